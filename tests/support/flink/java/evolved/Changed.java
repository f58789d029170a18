package evolved;

import java.math.BigDecimal;
import java.time.Instant;
import java.time.LocalDate;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;

/** Classes as the new job has them; {@code before/evolved} has those of the old job. */
public final class Changed {
    private Changed() {}

    public enum Color {
        NEW, RED, GREEN, BLUE
    }

    public enum Fewer {
        RED, GREEN, BLUE
    }

    public enum Lost {
        BLUE
    }

    public enum More {
        RED, GREEN, BLUE
    }

    public static final class Inner {
        private int x;
        private String y;
    }

    public static final class InnerGrown {
        private int x;
        private String y;
        private long z;
    }

    public static final class InnerFinal {
        private int x;
    }

    public interface Shape {}

    public static class Circle {
        private int radius;
        private int width;
    }

    public static class Round {
        private int radius;
    }

    public static class Base {
        protected int extra;
        protected int id;
    }

    public static final class Link {
        private int n;
    }

    public static class Box<T> {
        private T held;
        private int n;
    }

    public static final class KryoLists {
        private List<String> tags;
        private Set<Integer> numbers;
        private Map<String, Long> counts;
    }

    public static final class KryoEmpty {
        private int a;
        private List<String> none;
    }

    public static final class KryoDoubles {
        private double d;
        private float f;
        private long l;
    }

    public static final class KryoInts {
        private int i;
        private long l;
        private String s;
        private boolean b;
        private byte y;
    }

    public static final class KryoNested {
        private int a;
        private InnerGrown inner;
    }

    public static final class KryoNestedSame {
        private int a;
        private Inner inner;
    }

    public static final class KryoEnum {
        private int a;
        private Color color;
    }

    public static final class KryoEnumFewer {
        private int a;
        private Fewer color;
    }

    public static final class KryoEnumLost {
        private int a;
        private Lost color;
    }

    public static final class KryoEnumMore {
        private int a;
        private More color;
    }

    public static final class KryoShapeGrown {
        private int a;
        private Object shape;
    }

    public static final class KryoShapeGone {
        private int a;
        private Object shape;
    }

    public static final class KryoShapeSame {
        private int a;
        private Object shape;
    }

    public static final class KryoBase extends Base {
        private String own;
    }

    public static final class KryoRenamedSameOrder {
        private int aa;
        private int bb;
    }

    public static final class KryoIntToLong {
        private long a;
        private String b;
    }

    public static final class KryoLongToInt {
        private int a;
        private String b;
    }

    public static final class KryoIntToBox {
        private Integer a;
        private String b;
    }

    public static final class KryoBoxToInt {
        private int a;
        private String b;
    }

    public static final class KryoInnerFinal {
        private int a;
        private InnerFinal inner;
    }

    public static final class KryoTransient {
        private int a;
        private transient int b;
    }

    public static final class KryoTransientFirst {
        private transient int a;
        private int b;
    }

    public static final class KryoArrays {
        private int[] ints;
        private String[] words;
        private long n;
    }

    public static final class KryoInnerArray {
        private InnerGrown[] inners;
        private long n;
    }

    public static final class KryoBoxed {
        private Box<String> box;
        private int n;
    }

    public static final class KryoDays {
        private LocalDate day;
        private int n;
    }

    public static final class KryoUuid {
        private UUID id;
        private int n;
    }

    public static final class KryoDecimal {
        private BigDecimal amount;
        private int n;
    }

    public static final class KryoInstant {
        private Instant at;
        private int n;
    }

    public static final class KryoObjects {
        private Object a;
        private Object b;
        private Object c;
    }

    public static final class KryoFieldMoved {
        private int a;
        private String c;
        private String d;
    }

    public static final class KryoBoolAdded {
        private boolean a;
        private int b;
        private String c;
    }

    public static final class KryoByteAdded {
        private int a;
        private int b;
        private byte c;
    }

    public static final class KryoDropFirst {
        private int b;
        private String c;
    }

    public static final class KryoStringToObject {
        private int a;
        private Object b;
    }

    public record KryoClassToRecord(int a, String b) {}

    public static class NowPojo {
        public int a;
        public String b;
    }

    public static final class KryoOwnGrown {
        private int a;
        private int b;
        private String c;
        private void writeObject(java.io.ObjectOutputStream o) throws java.io.IOException { o.defaultWriteObject(); }
    }

    public static final class KryoOwn {
        private int a;
        private int b;
        private void writeObject(java.io.ObjectOutputStream o) throws java.io.IOException { o.defaultWriteObject(); }
    }

    public static class Plain {
        public int a;
        public String b;
    }

    public static class Zoo {
        public int legs;
    }

    public static class Cat extends Zoo {
        public int lives;
        public String mood;
    }

    public static class Dog extends Zoo {
        public int barks;
    }

    public static class Fish extends Zoo {
        public long fins;
    }

    public static class Cow extends Zoo {
        public int milk;
    }

    public static class Fox extends Zoo {
        private int tail;
        public Fox(int n) { tail = n; }
    }

    public static class PojoInner {
        public int a;
        public Inner inner;
    }

    public static class PojoInnerGrown {
        public int a;
        public InnerGrown inner;
    }

    public static class PojoInnerGrownFirst {
        public InnerGrown inner;
        public int z;
    }

    public static class PojoList {
        public int a;
        public List<String> tags;
    }

    public static class PojoMap {
        public int a;
        public Map<String, Integer> counts;
    }

    public static class PojoKryoList {
        public int a;
        public List<InnerGrown> inners;
    }

    public static class PojoEnum {
        public int a;
        public Color color;
    }

    public static class PojoEnumLost {
        public int a;
        public Lost color;
    }

    public static class PojoEnumFewer {
        public int a;
        public Fewer color;
    }

    public record PojoToRecord(int a, String b) {}

    public record PojoRecord(int a, String b) {}

    public record PojoRecordGrown(int a, String b, long c) {}

    public static class PojoRecordToPojo {
        public int a;
        public String b;
    }

    public static class PojoZooField {
        public int n;
        public Zoo zoo;
    }

    public static class PojoObject {
        public int a;
        public Object held;
    }

    public static class PojoObjectSame {
        public int a;
        public Object held;
    }

    public static class PojoObjectGone {
        public int a;
        public Object held;
    }

    public static class Chain {
        private int n;
    }

    public static class PojoKryoField {
        public int a;
        public Link link;
    }

    public static class PojoFieldNoPojo {
        public int a;
        public Chain chain;
    }

    public static class PojoGrownKryo {
        public int a;
        public Inner inner;
        public long more;
    }
}
