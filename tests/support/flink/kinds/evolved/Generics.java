package evolved;

/** Classes with collections and type parameters, as the new job has them; {@code before/evolved} has those of the old job. */
public final class Generics {
    private Generics() {}

    public static class Part { public int x; public String y; public long z; }
    public static class PartSame { public int x; public String y; }
    public static class Lists { public java.util.List<java.util.List<Part>> held; }
    public static class ListsSame { public java.util.List<java.util.List<PartSame>> held; }
    public static class Maps { public java.util.Map<String, java.util.List<Part>> held; }
    public static class MapsSame { public java.util.Map<String, java.util.List<PartSame>> held; }
    public static class OneList { public java.util.List<Part> held; }
    public static class Array { public Part[] held; }
    public static class ListToLong { public java.util.List<Long> held; }
    public static final class KryoListToLong { private java.util.List<Long> held; }
    public static class ListToSet { public java.util.Set<String> held; }
    public static class ListToArrayList { public java.util.ArrayList<String> held; }
    public static class MapToTree { public java.util.TreeMap<String, String> held; }
    public static final class KryoArrayToLinked { private java.util.LinkedList<String> held; }
    public static final class KryoListToCollection { private java.util.Collection<String> held; }
    public static class Box<T> { public T held; public int n; }
    public static class TextBox extends Box<String> { public int m; }
    public static class RetypedBox extends Box<Long> { public int m; }
    public static class HasBox { public Box<String> held; public int m; }
    public static class HasOtherBox { public Box<Long> held; public int m; }
    public static class HasObject { public Object held; public int m; }
    public static class HasObjectSame { public Object held; public int m; }
    public static class IntsToLongs { public long[] held; }
    public static class OptionalPart { public java.util.Optional<Part> held; public int m; }
    public static final class KryoNestedList { private java.util.List<java.util.List<Part>> held; }
    public static final class KryoMapKeys { private java.util.Map<PartSame, Part> held; }
    public static final class KryoSorted { private java.util.TreeMap<String, Part> held; }
}
