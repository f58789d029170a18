package evolved;

/** Classes with collections and type parameters, as the old job has them, and values of them; {@code java/evolved} has those of the new job. */
public final class Generics {
    private Generics() {}

    public static class Part { public int x; public String y; }
    public static class PartSame { public int x; public String y; }
    public static class Lists { public java.util.List<java.util.List<Part>> held; }
    public static class ListsSame { public java.util.List<java.util.List<PartSame>> held; }
    public static class Maps { public java.util.Map<String, java.util.List<Part>> held; }
    public static class MapsSame { public java.util.Map<String, java.util.List<PartSame>> held; }
    public static class OneList { public java.util.List<Part> held; }
    public static class Array { public Part[] held; }
    public static class ListToLong { public java.util.List<Integer> held; }
    public static final class KryoListToLong { private java.util.List<Integer> held; }
    public static class ListToSet { public java.util.List<String> held; }
    public static class ListToArrayList { public java.util.List<String> held; }
    public static class MapToTree { public java.util.Map<String, String> held; }
    public static final class KryoArrayToLinked { private java.util.ArrayList<String> held; }
    public static final class KryoListToCollection { private java.util.List<String> held; }
    public static class Box<T> { public T held; public int n; }
    public static class TextBox extends Box<String> { public int m; }
    public static class RetypedBox extends Box<String> { public int m; }
    public static class HasBox { public Box<String> held; public int m; }
    public static class HasOtherBox { public Box<Integer> held; public int m; }
    public static class HasObject { public Object held; public int m; }
    public static class HasObjectSame { public Object held; public int m; }
    public static class IntsToLongs { public int[] held; }
    public static class OptionalPart { public java.util.Optional<Part> held; public int m; }
    public static final class KryoNestedList { private java.util.List<java.util.List<Part>> held; }
    public static final class KryoMapKeys { private java.util.Map<PartSame, Part> held; }
    public static final class KryoSorted { private java.util.TreeMap<String, Part> held; }

    /** A value of a class. */
    public static Object of(String name, int n) throws Exception {
        switch (name.substring(name.indexOf('$') + 1)) {
            case "Part": return Kinds.fill(new Part(), n);
            case "PartSame": return Kinds.fill(new PartSame(), n);
            case "Lists": return Kinds.hold(new Lists(), Kinds.list(Kinds.list(Kinds.fill(new Part(), n))));
            case "ListsSame": return Kinds.hold(new ListsSame(), Kinds.list(Kinds.list(Kinds.fill(new PartSame(), n))));
            case "Maps": return Kinds.hold(new Maps(), Kinds.map("k", Kinds.list(Kinds.fill(new Part(), n))));
            case "MapsSame": return Kinds.hold(new MapsSame(), Kinds.map("k", Kinds.list(Kinds.fill(new PartSame(), n))));
            case "OneList": return Kinds.hold(new OneList(), Kinds.list(Kinds.fill(new Part(), n)));
            case "Array": return Kinds.hold(new Array(), new Part[] {Kinds.fill(new Part(), n)});
            case "ListToLong": return Kinds.hold(new ListToLong(), Kinds.list(n, n + 1));
            case "KryoListToLong": return Kinds.hold(new KryoListToLong(), Kinds.list(n, n + 1));
            case "ListToSet": return Kinds.hold(new ListToSet(), Kinds.list(Kinds.s(n)));
            case "ListToArrayList": return Kinds.hold(new ListToArrayList(), Kinds.list(Kinds.s(n)));
            case "MapToTree": return Kinds.hold(new MapToTree(), Kinds.map("k", Kinds.s(n)));
            case "KryoArrayToLinked": return Kinds.hold(new KryoArrayToLinked(), Kinds.list(Kinds.s(n)));
            case "KryoListToCollection": return Kinds.hold(new KryoListToCollection(), Kinds.list(Kinds.s(n)));
            case "TextBox": return Kinds.hold(Kinds.fill(new TextBox(), n), Kinds.s(n));
            case "RetypedBox": return Kinds.hold(Kinds.fill(new RetypedBox(), n), Kinds.s(n));
            case "HasBox": return Kinds.hold(new HasBox(), Kinds.hold(new Box<String>(), Kinds.s(n)));
            case "HasOtherBox": return Kinds.hold(new HasOtherBox(), Kinds.hold(new Box<Integer>(), n));
            case "HasObject": return Kinds.hold(new HasObject(), Kinds.fill(new Part(), n));
            case "HasObjectSame": return Kinds.hold(new HasObjectSame(), Kinds.fill(new PartSame(), n));
            case "IntsToLongs": return Kinds.hold(new IntsToLongs(), new int[] {n});
            case "OptionalPart": return Kinds.hold(new OptionalPart(), java.util.Optional.of(Kinds.fill(new Part(), n)));
            case "KryoNestedList": return Kinds.hold(new KryoNestedList(), Kinds.list(Kinds.list(Kinds.fill(new Part(), n))));
            case "KryoMapKeys": return Kinds.hold(new KryoMapKeys(), Kinds.map(Kinds.fill(new PartSame(), n), Kinds.fill(new Part(), n)));
            case "KryoSorted": return Kinds.hold(new KryoSorted(), new java.util.TreeMap<>(java.util.Map.of("a", Kinds.fill(new Part(), n))));
            default: throw new IllegalArgumentException(name);
        }
    }
}
