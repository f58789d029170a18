package evolved;

/** Classes that became abstract, final, private or others, as the new job has them; {@code before/evolved} has those of the old job. */
public final class Shapes {
    private Shapes() {}

    public abstract static class NowAbstract { public int a; public String b; }
    public interface NowInterface { }
    public static final class NowFinal { public int a; public String b; }
    private static class NowPrivate { public int a; public String b; }
    static class NowPackage { public int a; public String b; }
    public class NowInner { public int a; public String b; }
    public enum NowEnum { A, B }
    public static class NowClass { public int a; public String b; }
    public static class NoConstructor { public int a; public String b; public NoConstructor(int a) { this.a = a; } }
    public static class PrivateConstructor { public int a; public String b; private PrivateConstructor() { } }
    public static class PackageConstructor { public int a; public String b; PackageConstructor() { } }
    public static class NoSetter { private int a; public String b; public int getA() { return a; } }
    public static class NewSetter { public int a; public String b; }
    public static class FinalField { public final int a = Integer.parseInt("3"); public String b; }
    public static class FinalConstant { public final int a = 3; public String b; }
    public static class TransientField { public transient int a; public String b; }
    public static class StaticField { public static int a; public String b; }
    public static class NoMoreTransient { public int a; public String b; }
    public static class VolatileField { public volatile int a; public String b; }
    public static final class KryoTransientLast { private int a; private transient String b; }
    public static final class KryoStaticFirst { private static int a; private int b; }
    public static final class KryoStaticLast { private int a; private static int b; }
    public static final class KryoFinal { private final int a = Integer.parseInt("3"); private final String b = String.valueOf(4); }
    public static final class KryoFinalConstant { private final int a = 3; private final String b = "x"; }
    public static final class KryoNoMoreTransient { private int a; private int b; }
    private static final class KryoPrivateClass { private int a; private String b; }
    public abstract static class KryoAbstract { private int a; private String b; }
    public interface KryoInterface { }
    public final class KryoInner { private int a; private String b; }
    public static final class KryoNoConstructor { private int a; private String b; public KryoNoConstructor(String b) { this.b = b.trim(); } }
    public abstract static class KryoBase { private int a; }
    public static class KryoSub extends KryoBase { private int b; }
    public abstract static class Base { public int legs; }
    public static class Sub extends Base { public int lives; }
    public static class BaseSame { public int legs; }
    public abstract static class SubAbstract extends BaseSame { public int lives; }
    public static class HoldsAbstract { public int x; public NowAbstract in; }
    public static class HoldsAbstractNull { public int x; public NowAbstract in; }
    public static final class KryoHoldsAbstract { private int x; private Object in; }
}
