package typed;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.PriorityQueue;
import java.util.Queue;
import java.util.Set;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.Stack;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.Vector;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Stream;
import org.apache.flink.api.java.tuple.Tuple2;

/** Fields that are collections and maps. */
public class Collections {
    @SuppressWarnings("rawtypes")
    public static class Lists {
        public List<String> texts; public List<Integer> numbers; public List<Shapes.Item> items; public List<Shapes.Hidden> hidden;
        public List raw; public List<?> any; public List<? extends Number> upper; public List<? super Integer> lower;
        public List<? extends Shapes.Item> upperItems; public List<Object> objects; public List<List<String>> nested; public List<Map<String, Integer>> maps;
        public List<String[]> arrays; public List<byte[]> octets; public List<Tuple2<String, Integer>> tuples; public List<Basics.Color> colors;
        public List<Shapes.Linked> linked; public List<List> rawInside; public List<Shapes.Point> points; public List<Tuple2[]> tupleArrays;
        public ArrayList<String> arrayList; public LinkedList<String> linkedList; public Vector<String> vector; public Stack<String> stack;
        public CopyOnWriteArrayList<String> copying; public Collection<String> collection; public Collection<?> anyCollection;
        public Collection<Shapes.Item> itemCollection; public Collection rawCollection; public Iterable<String> iterable; public Iterable<Shapes.Item> items2;
        public Iterator<String> iterator; public Queue<String> queue; public Deque<String> deque; public ArrayDeque<String> arrayDeque;
        public PriorityQueue<String> priority; public Stream<String> stream; public List<String>[] arrayOfLists; public List[] arrayOfRaw;
        public List<List<String>[]> nestedArrays; public List<Shapes.Boxed<String>> boxes; public List<Shapes.Names> names; public List<Void> voids;
        public List<Class> classes; public List<Class<?>> anyClasses; public List<java.util.UUID> uuids; public List<int[][]> grids;
    }

    @SuppressWarnings("rawtypes")
    public static class Sets {
        public Set<String> texts; public Set<Shapes.Item> items; public Set raw; public Set<?> any; public Set<Set<String>> nested;
        public HashSet<String> hashSet; public LinkedHashSet<String> linkedHashSet; public TreeSet<String> treeSet; public SortedSet<String> sorted;
        public Set<? extends Number> upper; public Set<Basics.Color> colors; public Set<Long> numbers; public Set<Shapes.Hidden> hidden;
    }

    @SuppressWarnings("rawtypes")
    public static class Maps {
        public Map<String, Integer> counts; public Map<String, Shapes.Item> items; public Map<Shapes.Item, Shapes.Hidden> hidden; public Map raw;
        public Map<?, ?> any; public Map<String, ?> half; public Map<String, List<String>> nested; public Map<String, Object> objects;
        public Map<Long, byte[]> octets; public Map<Basics.Color, String[]> arrays; public HashMap<String, Integer> hashMap;
        public LinkedHashMap<String, Integer> linkedHashMap; public TreeMap<String, Integer> treeMap; public SortedMap<String, Integer> sorted;
        public NavigableMap<String, Integer> navigable; public ConcurrentHashMap<String, Integer> concurrent; public ConcurrentMap<String, Integer> anyConcurrent;
        public Map<String, ? extends Number> upper; public Map<String, Map> rawInside; public Map<String, Integer>[] arrayOfMaps;
        public Map<Integer, Shapes.Linked> linked; public Map<String, Shapes.Point> points; public Map<String, Tuple2<String, Integer>> tuples;
    }
}
