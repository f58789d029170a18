package typed;

import java.util.List;
import java.util.Map;
import org.apache.flink.api.java.tuple.Tuple2;

/** Classes with type variables, bound by fields and by subclasses. */
public class Generics {
    public static class Box<T> { public T value; }

    public static class Bounded<T extends Number> { public T value; }

    public static class BoundedByItem<T extends Shapes.Item> { public T value; public T[] array; }

    public static class Lists<T> { public List<T> list; public T[] array; public Map<String, T> map; public Box<T> box; public Tuple2<T, String> tuple; public List<T>[] lists; }

    public static class Pair<A, B> { public A first; public B second; }

    public static class Swapped<A, B> extends Pair<B, A> { public A again; }

    public static class Accessors<T> {
        private T value; private List<T> list;
        public T getValue() { return value; } public void setValue(T v) { value = v; }
        public List<T> getList() { return list; } public void setList(List<T> v) { list = v; }
    }

    public static class OfText extends Box<String> { public int n; }

    public static class OfItem extends Box<Shapes.Item> { }

    public static class OfList extends Box<List<String>> { }

    public static class OfArray extends Box<int[]> { }

    public static class OfTuple extends Box<Tuple2<String, Long>> { }

    public static class OfBox extends Box<Box<Integer>> { }

    public static class TextAccessors extends Accessors<String> { }

    public static class ListsOfText extends Lists<String> { }

    public static class Deep extends Swapped<String, Integer> { }

    public static class OverridingAccessors extends Accessors<Long> {
        @Override public Long getValue() { return super.getValue(); } @Override public void setValue(Long v) { super.setValue(v); }
    }

    @SuppressWarnings("rawtypes")
    public static class RawChild extends Box { public int n; }

    public static class Node<T> { public T value; public Node<T> next; }

    public static class Recursive<T extends Comparable<T>> { public T value; }

    public static class Self<T extends Self<T>> { public int n; public T itself; }

    public static class OfSelf extends Self<OfSelf> { }

    @SuppressWarnings("rawtypes")
    public static class Holder {
        public Box<String> text; public Box<Shapes.Item> item; public Box<List<String>> list; public Box<?> any; public Box<? extends Number> upper;
        public Box raw; public Box<int[]> array; public Box<Shapes.Item[]> items; public Box<Box<String>> nested; public Box<Tuple2<String, Integer>> tuple;
        public Bounded<Integer> bounded; public Bounded<?> boundedAny; public BoundedByItem<Shapes.Item> byItem; public Lists<String> lists;
        public Lists<Shapes.Item> itemLists; public Pair<String, Integer> pair; public Pair<Box<String>, Box<Integer>> boxes; public Swapped<String, Integer> swapped;
        public Accessors<String> accessors; public OfText ofText; public OfItem ofItem; public OfList ofList; public OfArray ofArray; public OfTuple ofTuple;
        public OfBox ofBox; public TextAccessors textAccessors; public ListsOfText listsOfText; public Deep deep; public OverridingAccessors overriding;
        public RawChild rawChild; public Node<String> node; public Recursive<String> recursive; public OfSelf ofSelf; public Box<String>[] boxArray;
        public Box<Basics.Color> color; public Pair<String, String>[][] pairs; public Box<java.util.Map<String, Integer>> map; public Self<OfSelf> self;
    }

    /** A variable of the class itself, which {@code of(Class)} does not know. */
    public static class Open<T, N extends Number> {
        public T value; public N number; public Box<T> box; public List<T> list; public T[] array; public Tuple2<T, String> tuple; public Pair<String, T> pair;
        public Map<String, T> map; public List<T>[] lists; public int n;
    }
}
