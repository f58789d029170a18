package evolved;

import java.math.BigDecimal;
import java.time.Instant;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;

/** Classes as the old job has them, and values of them; {@code java/evolved} has those of the new job. */
public final class Changed {
    private Changed() {}

    public enum Color {
        RED, GREEN, BLUE
    }

    public enum Fewer {
        RED, GREEN, BLUE, PINK
    }

    public enum Lost {
        BLUE, RED, GREEN
    }

    public enum More {
        RED, GREEN
    }

    public static final class Inner {
        private int x;
        private String y;
    }

    public static final class InnerGrown {
        private int x;
        private String y;
    }

    public static class InnerFinal {
        private int x;
    }

    public interface Shape {}

    public static class Circle {
        private int radius;
    }

    public static class Square {
        private int side;
    }

    public static class Round {
        private int radius;
    }

    public static class Base {
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
        private List<String> none = new ArrayList<>();
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
        private Object shape = fill(Circle.class, 3);
    }

    public static final class KryoShapeGone {
        private int a;
        private Object shape = fill(Square.class, 3);
    }

    public static final class KryoShapeSame {
        private int a;
        private Object shape = fill(Round.class, 3);
    }

    public static final class KryoBase extends Base {
        private String own;
    }

    public static final class KryoRenamedSameOrder {
        private int a;
        private int b;
    }

    public static final class KryoIntToLong {
        private int a;
        private String b;
    }

    public static final class KryoLongToInt {
        private long a;
        private String b;
    }

    public static final class KryoIntToBox {
        private int a;
        private String b;
    }

    public static final class KryoBoxToInt {
        private Integer a;
        private String b;
    }

    public static final class KryoInnerFinal {
        private int a;
        private InnerFinal inner;
    }

    public static final class KryoTransient {
        private int a;
        private int b;
    }

    public static final class KryoTransientFirst {
        private int a;
        private int b;
    }

    public static final class KryoArrays {
        private int[] ints = {1, 2};
        private String[] words = {"a", "b"};
        private long n;
    }

    public static final class KryoInnerArray {
        private InnerGrown[] inners = {(InnerGrown) fill(InnerGrown.class, 4)};
        private long n;
    }

    public static final class KryoBoxed {
        private Box<String> box;
        private int n;
    }

    public static final class KryoDays {
        private LocalDate day = LocalDate.of(2024, 2, 29);
        private int n;
    }

    public static final class KryoUuid {
        private UUID id = new UUID(5, 7);
        private int n;
    }

    public static final class KryoDecimal {
        private BigDecimal amount = new BigDecimal("12.50");
        private int n;
    }

    public static final class KryoInstant {
        private Instant at = Instant.ofEpochSecond(1700000000L, 5000000L);
        private int n;
    }

    public static final class KryoObjects {
        private Object a = 7;
        private Object b = "text";
        private Object c = 5L;
    }

    public static final class KryoFieldMoved {
        private int a;
        private String b;
        private String c;
    }

    public static final class KryoBoolAdded {
        private int b;
        private String c;
    }

    public static final class KryoByteAdded {
        private int a;
        private int b;
    }

    public static final class KryoDropFirst {
        private int a;
        private int b;
        private String c;
    }

    public static final class KryoStringToObject {
        private int a;
        private String b;
    }

    public static final class KryoClassToRecord {
        private int a;
        private String b;
    }

    public static final class NowPojo {
        private int a;
        private String b;
    }

    public static final class KryoOwnGrown {
        private int a;
        private int b;
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
    }

    public static class Dog extends Zoo {
        public int barks;
        public String name;
    }

    public static class Fish extends Zoo {
        public int fins;
    }

    public static class Cow extends Zoo {
        public int milk;
    }

    public static class Bat extends Zoo {
        public int wings;
    }

    public static class Fox extends Zoo {
        public int tail;
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

    public static class PojoToRecord {
        public int a;
        public String b;
    }

    public record PojoRecord(int a, String b) {}

    public record PojoRecordGrown(int a, String b) {}

    public record PojoRecordToPojo(int a, String b) {}

    public static class PojoZooField {
        public int n;
        public Zoo zoo;
    }

    public static class PojoObject {
        public int a;
        public Object held = fill(Circle.class, 3);
    }

    public static class PojoObjectSame {
        public int a;
        public Object held = fill(Round.class, 3);
    }

    public static class PojoObjectGone {
        public int a;
        public Object held = fill(Square.class, 3);
    }

    public static class Chain {
        public int n;
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
    }

    /** A value of a class: each field holds something else in each. {@code Zoo:Cat} is a Cat in the place of a Zoo. */
    public static Object of(String name, int n) throws Exception {
        return fill(Class.forName(name.replaceAll("\\$Zoo:", "\\$")), n);
    }

    static Object fill(java.lang.reflect.Type type, int n) {
        try {
            return make(type, n);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    private static Object make(java.lang.reflect.Type type, int n) throws ReflectiveOperationException {
        if (type instanceof java.lang.reflect.ParameterizedType) {
            java.lang.reflect.Type[] args = ((java.lang.reflect.ParameterizedType) type).getActualTypeArguments();
            Class<?> raw = (Class<?>) ((java.lang.reflect.ParameterizedType) type).getRawType();
            if (raw == List.class) {
                return new ArrayList<>(java.util.Arrays.asList(make(args[0], n + 1), make(args[0], n + 2)));
            }
            if (raw == Set.class) {
                return new java.util.HashSet<>(java.util.Arrays.asList(make(args[0], n + 1)));
            }
            if (raw == Map.class) {
                return new java.util.HashMap<>(java.util.Collections.singletonMap(make(args[0], n + 1), make(args[1], n + 2)));
            }
            return make(raw, n);
        }
        if (!(type instanceof Class) || type == Object.class) {
            return "any " + n;
        }
        Class<?> cls = (Class<?>) type;
        if (cls == String.class) {
            return "text " + n;
        }
        if (cls == int.class || cls == Integer.class) {
            return n;
        }
        if (cls == long.class || cls == Long.class) {
            return (long) n;
        }
        if (cls == double.class) {
            return n + 0.25;
        }
        if (cls == float.class) {
            return n + 0.5f;
        }
        if (cls == boolean.class) {
            return n % 2 == 0;
        }
        if (cls == byte.class) {
            return (byte) n;
        }
        if (cls == Zoo.class) {
            cls = Cat.class;
        }
        if (cls.isEnum()) {
            Object[] constants = cls.getEnumConstants();
            return constants[n % Math.min(3, constants.length)];
        }
        if (cls.isRecord()) {
            Class<?>[] kinds = new Class<?>[cls.getRecordComponents().length];
            Object[] parts = new Object[kinds.length];
            for (int i = 0; i < kinds.length; i++) {
                kinds[i] = cls.getRecordComponents()[i].getType();
                parts[i] = make(kinds[i], 10 * n + i);
            }
            java.lang.reflect.Constructor<?> canonical = cls.getDeclaredConstructor(kinds);
            canonical.setAccessible(true);
            return canonical.newInstance(parts);
        }
        java.lang.reflect.Constructor<?> constructor = cls.getDeclaredConstructor();
        constructor.setAccessible(true);
        Object value = constructor.newInstance();
        int i = 0;
        for (Class<?> c = cls; c != Object.class; c = c.getSuperclass()) {
            for (java.lang.reflect.Field f : c.getDeclaredFields()) {
                if (java.lang.reflect.Modifier.isStatic(f.getModifiers())) {
                    continue;
                }
                f.setAccessible(true);
                i++;
                if (f.get(value) == null || f.getType().isPrimitive()) {
                    f.set(value, make(f.getGenericType(), 10 * n + i));
                }
            }
        }
        return value;
    }
}
