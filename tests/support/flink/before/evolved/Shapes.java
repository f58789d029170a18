package evolved;

/** Classes that became abstract, final, private or others, as the old job has them, and values of them; {@code java/evolved} has those of the new job. */
public final class Shapes {
    private Shapes() {}

    public static class NowAbstract { public int a; public String b; }
    public static class NowInterface { public int a; public String b; }
    public static class NowFinal { public int a; public String b; }
    public static class NowPrivate { public int a; public String b; }
    public static class NowPackage { public int a; public String b; }
    public static class NowInner { public int a; public String b; }
    public static class NowEnum { public int a; public String b; }
    public enum NowClass { A, B }
    public static class NoConstructor { public int a; public String b; }
    public static class PrivateConstructor { public int a; public String b; }
    public static class PackageConstructor { public int a; public String b; }
    public static class NoSetter { private int a; public String b; public int getA() { return a; } public void setA(int v) { a = v; } }
    public static class NewSetter { private int a; public String b; public int getA() { return a; } public void setA(int v) { a = v; } }
    public static class FinalField { public int a; public String b; }
    public static class FinalConstant { public int a; public String b; }
    public static class TransientField { public int a; public String b; }
    public static class StaticField { public int a; public String b; }
    public static class NoMoreTransient { public transient int a; public String b; }
    public static class VolatileField { public int a; public String b; }
    public static final class KryoTransientLast { private int a; private String b; }
    public static final class KryoStaticFirst { private int a; private int b; }
    public static final class KryoStaticLast { private int a; private int b; }
    public static final class KryoFinal { private int a; private String b; }
    public static final class KryoFinalConstant { private int a; private String b; }
    public static final class KryoNoMoreTransient { private int a; private transient int b; }
    public static final class KryoPrivateClass { private int a; private String b; }
    public static class KryoAbstract { private int a; private String b; }
    public static class KryoInterface { private int a; private String b; }
    public static final class KryoInner { private int a; private String b; }
    public static final class KryoNoConstructor { private int a; private String b; }
    public static class KryoBase { private int a; }
    public static class KryoSub extends KryoBase { private int b; }
    public static class Base { public int legs; }
    public static class Sub extends Base { public int lives; }
    public static class BaseSame { public int legs; }
    public static class SubAbstract extends BaseSame { public int lives; }
    public static class HoldsAbstract { public int x; public NowAbstract in; }
    public static class HoldsAbstractNull { public int x; public NowAbstract in; }
    public static final class KryoHoldsAbstract { private int x; private Object in; }

    /** A value of a class. */
    public static Object of(String name, int n) throws Exception {
        switch (name.substring(name.indexOf('$') + 1)) {
            case "NowAbstract": return Kinds.fill(new NowAbstract(), n);
            case "NowInterface": return Kinds.fill(new NowInterface(), n);
            case "NowFinal": return Kinds.fill(new NowFinal(), n);
            case "NowPrivate": return Kinds.fill(new NowPrivate(), n);
            case "NowPackage": return Kinds.fill(new NowPackage(), n);
            case "NowInner": return Kinds.fill(new NowInner(), n);
            case "NowEnum": return Kinds.fill(new NowEnum(), n);
            case "NowClass": return NowClass.B;
            case "NoConstructor": return Kinds.fill(new NoConstructor(), n);
            case "PrivateConstructor": return Kinds.fill(new PrivateConstructor(), n);
            case "PackageConstructor": return Kinds.fill(new PackageConstructor(), n);
            case "NoSetter": return Kinds.fill(new NoSetter(), n);
            case "NewSetter": return Kinds.fill(new NewSetter(), n);
            case "FinalField": return Kinds.fill(new FinalField(), n);
            case "FinalConstant": return Kinds.fill(new FinalConstant(), n);
            case "TransientField": return Kinds.fill(new TransientField(), n);
            case "StaticField": return Kinds.fill(new StaticField(), n);
            case "NoMoreTransient": return Kinds.fill(new NoMoreTransient(), n);
            case "VolatileField": return Kinds.fill(new VolatileField(), n);
            case "KryoTransientLast": return Kinds.fill(new KryoTransientLast(), n);
            case "KryoStaticFirst": return Kinds.fill(new KryoStaticFirst(), n);
            case "KryoStaticLast": return Kinds.fill(new KryoStaticLast(), n);
            case "KryoFinal": return Kinds.fill(new KryoFinal(), n);
            case "KryoFinalConstant": return Kinds.fill(new KryoFinalConstant(), n);
            case "KryoNoMoreTransient": return Kinds.fill(new KryoNoMoreTransient(), n);
            case "KryoPrivateClass": return Kinds.fill(new KryoPrivateClass(), n);
            case "KryoAbstract": return Kinds.fill(new KryoAbstract(), n);
            case "KryoInterface": return Kinds.fill(new KryoInterface(), n);
            case "KryoInner": return Kinds.fill(new KryoInner(), n);
            case "KryoNoConstructor": return Kinds.fill(new KryoNoConstructor(), n);
            case "KryoSub": return Kinds.fill(new KryoSub(), n);
            case "Sub": return Kinds.fill(new Sub(), n);
            case "SubAbstract": return Kinds.fill(new SubAbstract(), n);
            case "HoldsAbstract": return Kinds.hold(new HoldsAbstract(), Kinds.fill(new NowAbstract(), n));
            case "HoldsAbstractNull": return new HoldsAbstractNull();
            case "KryoHoldsAbstract": return Kinds.hold(new KryoHoldsAbstract(), Kinds.fill(new KryoAbstract(), n));
            default: throw new IllegalArgumentException(name);
        }
    }
}
