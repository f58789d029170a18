package evolved;

/** Classes whose boxed fields became primitive, as the new job has them; {@code before/evolved} has those of the old job. */
public final class Nulls {
    private Nulls() {}

    public static class NullInteger { public int a; public String b; }
    public static class NullLong { public long a; public String b; }
    public static class NullBoolean { public boolean a; public String b; }
    public static class NullDouble { public double a; public String b; }
    public static class NullCharacter { public char a; public String b; }
    public static class NullShort { public short a; public String b; }
    public static class NullByte { public byte a; public String b; }
    public static class NullFloat { public float a; public String b; }
    public static class BoxInteger { public int a; public String b; }
    public static class BoxBoolean { public boolean a; public String b; }
    public static class IntToBox { public Integer a; public String b; }
    public static class NullPrivate { private int a; public String b; public int getA() { return a; } public void setA(int v) { a = v; } }
    public static class Inner { public int x; public String y; }
    public static class Nested { public int a; public Inner inner; }
    public static class NestedNull { public int a; public Inner inner; }
    public static class Grown { public int a; public String b; public long c; }
    public static final class KryoNull { private int a; private String b; }
    public static final class KryoNullLast { private String a; private int b; }
    public static class Sub { public int legs; }
    public static class Many { public java.util.List<Inner> all; }
}
