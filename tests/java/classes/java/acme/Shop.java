package acme;

import com.esotericsoftware.kryo.DefaultSerializer;
import com.esotericsoftware.kryo.KryoSerializable;
import java.io.Externalizable;
import java.io.IOException;
import java.io.ObjectInput;
import java.io.ObjectInputStream;
import java.io.ObjectOutput;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.flink.api.common.typeinfo.TypeInfo;

/** Classes of all kinds that the reader of class files tells apart. */
public final class Shop {
    private Shop() {}

    static final long LARGE = 1L << 40;

    public enum Color { RED, GREEN, BLUE }

    /** Arguments of a constant create objects; some constants have a body; other static fields follow. */
    public enum Op {
        PLUS(new StringBuilder("+").append(1), 7) { @Override int apply(int a) { return a + 1; } },
        NONE(new StringBuilder("x"), 3),
        MINUS(null, -200000) { @Override int apply(int a) { return a - 1; } };

        static final Op USUAL = PLUS;
        static final Map<String, Op> BY_NAME = new HashMap<>();
        static { for (Op op : values()) switch (op.name()) { case "PLUS": BY_NAME.put("p", op); break; default: BY_NAME.put(op.name(), op); } }

        final int weight;
        Op(Object text, int weight) { this.weight = weight; }
        int apply(int a) { return a; }
    }

    public static class Item implements Serializable {
        public int n;
        public String name;
        public transient String left;
        public static String out = "x";
    }

    public static final class BigItem extends Item {
        public List<Item> parts;
        public Map<String, ? extends Item> byName;
        public List<?> anything;
        public List<? super Item> sink;
        public int[][] grid;
        public Item[] array;
        public List<String>[] lists;
        public Color color;
    }

    public record Point(int y, Integer x) {}

    static class Hidden { public int a; }

    public static class NoConstructor {
        public int a;
        public NoConstructor(int a) { this.a = a; }
    }

    public static class Properties {
        private long long_name;
        private boolean open;
        private Integer boxed;
        public long getLongName() { return long_name; }
        public void setLongName(long v) { long_name = v; }
        public boolean isOpen() { return open; }
        public Properties setOpen(boolean v) { open = v; return this; }
        public Integer getBoxed() { return boxed; }
        public void setBoxed(Integer v) { boxed = v; }
    }

    public static class NoSetter {
        private long a;
        public long getA() { return a; }
    }

    public class Inner { public int a; }

    public static class Box<T> {
        public T value;
        public List<T> more;
    }

    public static class OfItem extends Box<Item> {}

    public static class OfText extends Box<String> {}

    static class HiddenOfText extends Box<String> {}

    public static class Same<T> extends Box<T> {}

    public static class Crossed<T> extends Box<List<T>> {}

    public static class Raw extends Box {}

    public static class Arrays<T> { public T[] values; }

    public static class FinalWildcard { public List<? extends String> names; }

    public static class Tags extends ArrayList<String> { public int ignored; }

    public static class Index<V> extends HashMap<Integer, V> {}

    public static class Sorted extends TreeSet<String> {}

    public static class Shadow extends Item { public long n; }

    public interface Animal {}

    public abstract static class Pet implements Animal { public int legs; }

    public static class Dog extends Pet { public boolean barks; }

    public static class Cat extends Pet { public Tagged tag; }

    public static class Puppy extends Dog { public String name; }

    @TypeInfo(String.class)
    public static class Tagged { public int a; }

    @DefaultSerializer(String.class)
    public static class Custom { public int a; }

    public static class BelowCustom extends Custom { public int b; }

    public static class Steps implements scala.collection.Traversable { public int a; }

    public static class Itself implements KryoSerializable { public int a; }

    public static class Outside implements Externalizable {
        public int a;
        @Override public void writeExternal(ObjectOutput out) {}
        @Override public void readExternal(ObjectInput in) {}
    }

    public static class Stream implements Serializable {
        public int a;
        private void readObject(ObjectInputStream in) throws IOException {}
    }

    public static class Failure extends RuntimeException { public int code; }

    public static class Worker extends Thread { public int a; }
}
