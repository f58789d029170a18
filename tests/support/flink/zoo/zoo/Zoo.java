package zoo;

import java.math.BigDecimal;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.flink.api.java.tuple.Tuple2;

/** Classes of the jobs: POJOs nested, generic, with subclasses of several levels, with names that are nobody's friends. */
public final class Zoo {
    private Zoo() {}

    public enum Mood { CALM, WILD, ASLEEP }

    /** Each constant is a class of its own. */
    public enum Sign {
        PLUS { @Override public int apply(int a) { return a; } },
        MINUS { @Override public int apply(int a) { return -a; } };

        public abstract int apply(int a);
    }

    public static class Place {
        public String street;
        public int number;
        public Integer floor;
        public Place() {}
        public Place(String street, int number, Integer floor) {
            this.street = street;
            this.number = number;
            this.floor = floor;
        }
    }

    /** Fields behind getters, one of the superclass, names that differ in case, names of our columns. */
    public static class Odd extends Place {
        private long key;
        private boolean value;
        public Double Namespace;
        public float namespace;
        public String _class;
        public char ünïcode;
        public short a$b;
        public byte b;
        public Odd() {}
        public long getKey() { return key; }
        public void setKey(long key) { this.key = key; }
        public boolean isValue() { return value; }
        public void setValue(boolean value) { this.value = value; }
    }

    public static class Pair<A, B> {
        public A first;
        public B second;
        public Pair() {}
        public Pair(A first, B second) {
            this.first = first;
            this.second = second;
        }
    }

    public static class Deep {
        public Pair<String, Pair<Integer, Place>> pair;
        public Place[] places;
        public Tuple2<String, Pair<Long, Mood>> tuple;
        public int[][] grid;
        public String[] words;
        public Long[] longs;
        public BigDecimal price;
        public Instant at;
        public Sign sign;
        public Mood mood;
        public byte[] raw;
        public Deep() {}
    }

    public static class Kept {
        public List<String> names;
        public Map<String, Integer> counts;
        public java.time.LocalDate day;
        public java.util.UUID id;
        public Kept() {}
    }

    public static class Beast {
        public String name;
        public Beast() {}
        public Beast(String name) { this.name = name; }
    }

    public static class Bird extends Beast {
        public double wing;
        public Bird() {}
        public Bird(String name, double wing) { super(name); this.wing = wing; }
    }

    public static class Parrot extends Bird {
        public String word;
        public Place friend;
        public Parrot() {}
        public Parrot(String name, double wing, String word, Place friend) {
            super(name, wing);
            this.word = word;
            this.friend = friend;
        }
    }

    public static class Fish extends Beast {
        public int wing;
        public Place home;
        public Fish() {}
        public Fish(String name, int wing, Place home) {
            super(name);
            this.wing = wing;
            this.home = home;
        }
    }

    public static class Cage {
        public Beast inside;
        public Pair<Beast, Integer> more;
        public Cage() {}
        public Cage(Beast inside, Pair<Beast, Integer> more) {
            this.inside = inside;
            this.more = more;
        }
    }

    public static class Id {
        public String part;
        public long number;
        public Tuple2<Integer, String> tail;
        public Id() {}
        public Id(String part, long number, Tuple2<Integer, String> tail) {
            this.part = part;
            this.number = number;
            this.tail = tail;
        }
        @Override public boolean equals(Object o) {
            return o instanceof Id && part.equals(((Id) o).part) && number == ((Id) o).number && tail.equals(((Id) o).tail);
        }
        @Override public int hashCode() { return Objects.hash(part, number, tail); }
    }
}
