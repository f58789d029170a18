package evolved;

/** Classes whose boxed fields became primitive, as the old job has them, and values of them; {@code java/evolved} has those of the new job. */
public final class Nulls {
    private Nulls() {}

    public static class NullInteger { public Integer a; public String b; }
    public static class NullLong { public Long a; public String b; }
    public static class NullBoolean { public Boolean a; public String b; }
    public static class NullDouble { public Double a; public String b; }
    public static class NullCharacter { public Character a; public String b; }
    public static class NullShort { public Short a; public String b; }
    public static class NullByte { public Byte a; public String b; }
    public static class NullFloat { public Float a; public String b; }
    public static class BoxInteger { public Integer a; public String b; }
    public static class BoxBoolean { public Boolean a; public String b; }
    public static class IntToBox { public int a; public String b; }
    public static class NullPrivate { private Integer a; public String b; public Integer getA() { return a; } public void setA(Integer v) { a = v; } }
    public static class Inner { public Integer x; public String y; }
    public static class Nested { public int a; public Inner inner; }
    public static class NestedNull { public int a; public Inner inner; }
    public static class Grown { public Integer a; public String b; }
    public static final class KryoNull { private Integer a; private String b; }
    public static final class KryoNullLast { private String a; private Integer b; }
    public static class Sub { public Integer legs; }
    public static class Many { public java.util.List<Inner> all; }

    /** A value of a class. */
    public static Object of(String name, int n) throws Exception {
        switch (name.substring(name.indexOf('$') + 1)) {
            case "NullInteger": return new NullInteger();
            case "NullLong": return new NullLong();
            case "NullBoolean": return new NullBoolean();
            case "NullDouble": return new NullDouble();
            case "NullCharacter": return new NullCharacter();
            case "NullShort": return new NullShort();
            case "NullByte": return new NullByte();
            case "NullFloat": return new NullFloat();
            case "BoxInteger": return Kinds.fill(new BoxInteger(), n);
            case "BoxBoolean": return Kinds.fill(new BoxBoolean(), n);
            case "IntToBox": return Kinds.fill(new IntToBox(), n);
            case "NullPrivate": return new NullPrivate();
            case "Inner": return new Inner();
            case "Nested": return Kinds.hold(new Nested(), new Inner());
            case "NestedNull": return new NestedNull();
            case "Grown": return new Grown();
            case "KryoNull": return new KryoNull();
            case "KryoNullLast": return new KryoNullLast();
            case "Sub": return new Sub();
            case "Many": return Kinds.hold(new Many(), new java.util.ArrayList<>(java.util.List.of(new Inner())));
            case "InTuple": return org.apache.flink.api.java.tuple.Tuple2.of(new NullInteger(), (long) n);
            case "InMapTuple": return org.apache.flink.api.java.tuple.Tuple2.of(new NullLong(), (long) n);
            default: throw new IllegalArgumentException(name);
        }
    }
}
