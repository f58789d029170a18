package evolved;

/** Classes whose constructors changed, as the new job has them; {@code before/evolved} has those of the old job. */
public final class Builders {
    private Builders() {}

    public static class Throws { public int a; public String b; public Throws() { throw new IllegalStateException("no"); } }
    public static class ThrowsIf { public int a; public String b; public ThrowsIf() { if (System.getProperty("acme.region") == null) throw new IllegalStateException("no"); } }
    public static class ThrowsNever { public int a; public String b; public ThrowsNever() { if (System.getProperty("user.dir") == null) throw new IllegalStateException("no"); } }
    public static class ThrowsElsewhere { public int a; public String b; public ThrowsElsewhere() { Settings.check(); } }
    public static class ThrowsDeep { public int a; public String b; public ThrowsDeep() { b = Settings.name(); } }
    public static class ThrowsInField { public int a; public String b; public int c = Integer.parseInt(System.getProperty("acme.size")); }
    public static class ThrowsInPrivate { public int a; public String b; private transient final int c = Integer.parseInt(System.getProperty("acme.size")); }
    public static class StaticThrows { public int a; public String b; static final int SIZE = Integer.parseInt(System.getProperty("acme.size")); }
    public static class StaticThrowsElsewhere { public int a; public String b; static final int SIZE = Settings.size(); }
    public static class StaticFine { public int a; public String b; static final java.util.Map<String, Integer> SIZES = new java.util.HashMap<>(); static { SIZES.put("a", 1); } }
    public static class StaticThrowsInit { public int a; public String b; static { if (true) { throw new IllegalStateException("x"); } } }
    public static class Null { public int a; public String b; public Null() { b = Settings.NAME.trim(); } }
    public static class Index { public int a; public String b; public Index() { a = Settings.ARRAY[3]; } }
    public static class Cast { public int a; public String b; public Cast() { b = (String) Settings.OBJECT; } }
    public static class Divides { public int a; public String b; public Divides() { a = 1 / Settings.ZERO; } }
    public static class Assigns { public int a; public String b; public Assigns() { a = 5; b = "x"; } }
    public static class Creates { public int a; public String b; private transient java.util.List<String> c = new java.util.ArrayList<>(); private transient java.util.UUID id = java.util.UUID.randomUUID(); private transient long at = System.currentTimeMillis(); }
    public static class Calls { public int a; public String b; public Calls() { reset(); } private void reset() { a = 0; b = null; } }
    public static class BaseThrows { BaseThrows() { throw new IllegalStateException("base"); } }
    public static class UnderThrows extends BaseThrows { public int a; public String b; }
    public static class BaseFine { int hidden() { return 1; } }
    public static class UnderFine extends BaseFine { public int a; public String b; }
    public static class SameThrower { public int a; public String b; public SameThrower() { if (System.getProperty("acme.never") != null) throw new IllegalStateException("no"); } }
    public static class SameCalls { public int a; public String b; public SameCalls() { b = String.valueOf(System.nanoTime()).trim(); } }
    public static class InnerThrows { public int a; public String b; public InnerThrows() { throw new IllegalStateException("no"); } }
    public static class HoldsThrows { public int x; public InnerThrows in; }
    public static class HoldsNoThrows { public int x; public InnerThrows in; }
    public static final class KryoThrows { private int a; private String b; public KryoThrows() { throw new IllegalStateException("no"); } }
    public static final class KryoThrowsIf { private int a; private String b; KryoThrowsIf() { Settings.check(); } }
    public static final class KryoWithout { private int a; private String b; public KryoWithout(int a) { if (a == 0) throw new IllegalStateException(); } }
    public static final class KryoStatic { private int a; private String b; static final int SIZE = Settings.size(); }
    public static final class KryoAssigns { private int a = 3; private String b = "x"; }
    public static final class KryoPrivateCtor { private int a; private String b; private KryoPrivateCtor() { throw new IllegalStateException(); } }
    public static class Lazy { public int a; public String b; public Lazy() { Runnable r = () -> { throw new IllegalStateException(); }; if (r == null) { a = 1; } } }
    public static class Catches { public int a; public String b; public Catches() { try { Settings.check(); } catch (RuntimeException e) { a = 1; } } }
    public static class SetterThrows { private int a; public String b; public int getA() { return a; } public void setA(int v) { if (v < 100) throw new IllegalArgumentException(); a = v; } }
    static final class Settings { static final String NAME = System.getProperty("acme.name"); static final int[] ARRAY = new int[2]; static final Object OBJECT = 5; static final int ZERO = Integer.getInteger("acme.zero", 0); static void check() { if (NAME == null) throw new IllegalStateException("no name"); } static String name() { return first(); } private static String first() { return java.util.Objects.requireNonNull(NAME); } static int size() { check(); return 1; } }
}
