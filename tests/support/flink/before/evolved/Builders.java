package evolved;

/** Classes whose constructors changed, as the old job has them, and values of them; {@code java/evolved} has those of the new job. */
public final class Builders {
    private Builders() {}

    public static class Throws { public int a; public String b; }
    public static class ThrowsIf { public int a; public String b; }
    public static class ThrowsNever { public int a; public String b; }
    public static class ThrowsElsewhere { public int a; public String b; }
    public static class ThrowsDeep { public int a; public String b; }
    public static class ThrowsInField { public int a; public String b; }
    public static class ThrowsInPrivate { public int a; public String b; }
    public static class StaticThrows { public int a; public String b; }
    public static class StaticThrowsElsewhere { public int a; public String b; }
    public static class StaticFine { public int a; public String b; }
    public static class StaticThrowsInit { public int a; public String b; }
    public static class Null { public int a; public String b; }
    public static class Index { public int a; public String b; }
    public static class Cast { public int a; public String b; }
    public static class Divides { public int a; public String b; }
    public static class Assigns { public int a; public String b; }
    public static class Creates { public int a; public String b; }
    public static class Calls { public int a; public String b; }
    public static class BaseThrows {  }
    public static class UnderThrows extends BaseThrows { public int a; public String b; }
    public static class BaseFine {  }
    public static class UnderFine extends BaseFine { public int a; public String b; }
    public static class SameThrower { public int a; public String b; public SameThrower() { if (System.getProperty("acme.never") != null) throw new IllegalStateException("no"); } }
    public static class SameCalls { public int a; public String b; public SameCalls() { b = String.valueOf(System.nanoTime()).trim(); } }
    public static class InnerThrows { public int a; public String b; }
    public static class HoldsThrows { public int x; public InnerThrows in; }
    public static class HoldsNoThrows { public int x; public InnerThrows in; }
    public static final class KryoThrows { private int a; private String b; }
    public static final class KryoThrowsIf { private int a; private String b; }
    public static final class KryoWithout { private int a; private String b; }
    public static final class KryoStatic { private int a; private String b; }
    public static final class KryoAssigns { private int a; private String b; }
    public static final class KryoPrivateCtor { private int a; private String b; }
    public static class Lazy { public int a; public String b; }
    public static class Catches { public int a; public String b; }
    public static class SetterThrows { private int a; public String b; public int getA() { return a; } public void setA(int v) { a = v; } }

    /** A value of a class. */
    public static Object of(String name, int n) throws Exception {
        switch (name.substring(name.indexOf('$') + 1)) {
            case "Throws": return Kinds.fill(new Throws(), n);
            case "ThrowsIf": return Kinds.fill(new ThrowsIf(), n);
            case "ThrowsNever": return Kinds.fill(new ThrowsNever(), n);
            case "ThrowsElsewhere": return Kinds.fill(new ThrowsElsewhere(), n);
            case "ThrowsDeep": return Kinds.fill(new ThrowsDeep(), n);
            case "ThrowsInField": return Kinds.fill(new ThrowsInField(), n);
            case "ThrowsInPrivate": return Kinds.fill(new ThrowsInPrivate(), n);
            case "StaticThrows": return Kinds.fill(new StaticThrows(), n);
            case "StaticThrowsElsewhere": return Kinds.fill(new StaticThrowsElsewhere(), n);
            case "StaticFine": return Kinds.fill(new StaticFine(), n);
            case "StaticThrowsInit": return Kinds.fill(new StaticThrowsInit(), n);
            case "Null": return Kinds.fill(new Null(), n);
            case "Index": return Kinds.fill(new Index(), n);
            case "Cast": return Kinds.fill(new Cast(), n);
            case "Divides": return Kinds.fill(new Divides(), n);
            case "Assigns": return Kinds.fill(new Assigns(), n);
            case "Creates": return Kinds.fill(new Creates(), n);
            case "Calls": return Kinds.fill(new Calls(), n);
            case "UnderThrows": return Kinds.fill(new UnderThrows(), n);
            case "UnderFine": return Kinds.fill(new UnderFine(), n);
            case "SameThrower": return Kinds.fill(new SameThrower(), n);
            case "SameCalls": return Kinds.fill(new SameCalls(), n);
            case "InnerThrows": return Kinds.fill(new InnerThrows(), n);
            case "HoldsThrows": return Kinds.hold(new HoldsThrows(), Kinds.fill(new InnerThrows(), n));
            case "HoldsNoThrows": return new HoldsNoThrows();
            case "KryoThrows": return Kinds.fill(new KryoThrows(), n);
            case "KryoThrowsIf": return Kinds.fill(new KryoThrowsIf(), n);
            case "KryoWithout": return Kinds.fill(new KryoWithout(), n);
            case "KryoStatic": return Kinds.fill(new KryoStatic(), n);
            case "KryoAssigns": return Kinds.fill(new KryoAssigns(), n);
            case "KryoPrivateCtor": return Kinds.fill(new KryoPrivateCtor(), n);
            case "Lazy": return Kinds.fill(new Lazy(), n);
            case "Catches": return Kinds.fill(new Catches(), n);
            case "SetterThrows": return Kinds.fill(new SetterThrows(), n);
            default: throw new IllegalArgumentException(name);
        }
    }
}
