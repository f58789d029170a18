package jarred;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Classes whose superclasses have type variables. */
public final class Generics {
    private Generics() {}

    public static class Open {
        public int n;

        public Open() {}

        Open(int n) { this.n = n; }
    }

    public static final class Closed {
        public int n;

        public Closed() {}

        Closed(int n) { this.n = n; }
    }

    static class Base<T> {
        T value;
        List<T> list;
        Map<String, T> map;
        List<List<T>> deep;

        @SuppressWarnings("unchecked")
        Object fill(Object... values) {
            value = (T) values[0];
            list = new ArrayList<>();
            deep = new ArrayList<>();
            map = new HashMap<>();
            for (Object v : values) list.add((T) v);
            deep.add(new ArrayList<>(list));
            map.put("k", (T) values[0]);
            return this;
        }
    }

    static class OfText extends Base<String> { String own = "o"; }

    static class OfNumber extends Base<Integer> {}

    static class OfOpen extends Base<Open> {}

    static class OfClosed extends Base<Closed> {}

    static class OfList extends Base<List<String>> {}

    static class Raw extends Base {}

    static class Middle<U> extends Base<U> { U more; }

    static class OfMiddle extends Middle<String> {}

    static class Same<T> extends Base<T> { T again; }

    static class OfSame extends Same<String> {}

    static class Pair<A, B> {
        A a;
        B b;

        @SuppressWarnings("unchecked")
        Object fill(Object a, Object b) {
            this.a = (A) a;
            this.b = (B) b;
            return this;
        }
    }

    static class Swapped<X, Y> extends Pair<Y, X> {}

    static class OfSwapped extends Swapped<String, Integer> {}

    static class Crossed<A, B> extends Pair<B, A> {}

    static class Holder {
        Base<String> base;
        OfText text;
        Middle<String> middle;
        Same<String> same;
        Swapped<String, Integer> swapped;
        Pair<String, Integer> pair;
    }

    static class Bound<T extends Closed> {
        T value;
        List<T> list;
    }

    static class OfBound extends Bound<Closed> {}

    static class OfMap extends Base<Map<String, Integer>> {}

    static class Deep<E> extends Base<List<E>> {}

    static class OfDeep extends Deep<String> {}

    static class Limited<T extends Open> {
        T value;
        List<T> list;
    }

    static class OfLimited extends Limited<Open> {}

    static class Array<T> { T[] array; }

    static class OfArray extends Array<String> {}

    static class DeepHolder {
        Deep<String> deep;
        List<Base<String>> bases;
        Map<String, Pair<String, Closed>> pairs;
    }

    /** Objects by name; the test knows their fields. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    public static Map<String, Object> all() {
        Map<String, Object> out = new HashMap<>();
        out.put("OfText", new OfText().fill("a", "b"));
        out.put("OfNumber", new OfNumber().fill(1, -300));
        out.put("OfOpen", new OfOpen().fill(new Open(1), new Open(2)));
        out.put("OfClosed", new OfClosed().fill(new Closed(1), new Closed(2)));
        out.put("OfList", new OfList().fill(new ArrayList<>(List.of("x")), new ArrayList<>(List.of("y", "z"))));
        out.put("Raw", new Raw().fill("a", 5));
        OfMiddle middle = (OfMiddle) new OfMiddle().fill("a", "b");
        middle.more = "c";
        out.put("OfMiddle", middle);
        OfSame same = (OfSame) new OfSame().fill("a", "b");
        same.again = "c";
        out.put("OfSame", same);
        out.put("OfSwapped", new OfSwapped().fill(5, "s"));
        Holder holder = new Holder();
        holder.base = (Base<String>) new Base<String>().fill("a", "b");
        holder.text = (OfText) new OfText().fill("c");
        holder.middle = (Middle<String>) new Middle<String>().fill("d");
        holder.middle.more = "e";
        holder.same = (Same<String>) new Same<String>().fill("f");
        holder.same.again = "g";
        holder.swapped = (Swapped<String, Integer>) new Swapped<String, Integer>().fill(7, "h");
        holder.pair = (Pair<String, Integer>) new Pair<String, Integer>().fill("i", 8);
        out.put("Holder", holder);
        OfBound bound = new OfBound();
        bound.value = new Closed(3);
        bound.list = new ArrayList<>(List.of(new Closed(4)));
        out.put("OfBound", bound);
        Map<String, Integer> one = new HashMap<>(Map.of("one", 1));
        out.put("OfMap", new OfMap().fill(one, new HashMap<>(Map.of("two", 2))));
        out.put("OfDeep", new OfDeep().fill(new ArrayList<>(List.of("x")), new ArrayList<>(List.of("y"))));
        OfLimited limited = new OfLimited();
        limited.value = new Open(3);
        limited.list = new ArrayList<>(List.of(new Open(4)));
        out.put("OfLimited", limited);
        OfArray array = new OfArray();
        array.array = new String[] {"p", null, "q"};
        out.put("OfArray", array);
        DeepHolder deep = new DeepHolder();
        deep.deep = (Deep<String>) new Deep<String>().fill(new ArrayList<>(List.of("x")));
        deep.bases = new ArrayList<>(List.of((Base<String>) new Base<String>().fill("u", "v")));
        deep.pairs = new HashMap<>(Map.of("k", (Pair<String, Closed>) new Pair<String, Closed>().fill("l", new Closed(6))));
        out.put("DeepHolder", deep);
        Crossed crossed = new Crossed<String, Integer>();
        crossed.fill(5, "s");
        out.put("Crossed", crossed);
        return out;
    }
}
