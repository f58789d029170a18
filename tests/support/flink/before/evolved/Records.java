package evolved;

/** Records as the old job has them, and values of them; {@code java/evolved} has those of the new job. */
public final class Records {
    private Records() {}

    public record RemovedLast(int a, String b, long c) {}
    public record RemovedFirst(int a, String b, long c) {}
    public record RemovedMiddle(int a, String b, long c) {}
    public record RemovedUnsorted(int z, String a, long m) {}
    public record RemovedUnsortedFirst(int z, String a, long m) {}
    public record RemovedTwo(int a, String b, long c, int d) {}
    public record RemovedSameTypes(int a, int b, int c) {}
    public record Added(int a, String b) {}
    public record AddedFirst(int b, String c) {}
    public record AddedPrimitive(int a, String b) {}
    public record AddedPrimitiveFirst(int b, String c) {}
    public record AddedChar(int b, String c) {}
    public record AddedAndRemoved(int a, String b, long c) {}
    public record AddedFirstRemovedLast(int b, String c, long d) {}
    public record Reordered(int a, String b) {}
    public record ReorderedSameTypes(int a, int b) {}
    public record ReorderedBack(String b, int a) {}
    public record ReorderedAdded(int a, String b) {}
    public record Renamed(int a, String b) {}
    public record RenamedAll(int a, String b) {}
    public record RejectsNull(int a, String b) {}
    public record RejectsNullKept(int a, String b) {}
    public record RejectsNullNone(int a, String b) {}
    public record RejectsNullBoth(int a, String b) { public RejectsNullBoth { java.util.Objects.requireNonNull(b); } }
    public record RejectsZero(int a, String b) {}
    public record RejectsZeroFirst(int b, String c) {}
    public record RejectsSmall(int a, String b) {}
    public record RejectsNegative(int a, String b) {}
    public record RejectsElsewhere(int a, String b) {}
    public record Copies(int a, String b) {}
    public record Replaces(int a, String b) {}
    public record Trims(int a, String b) {}
    public record Measures(int a, String b) {}
    public record Explicit(int a, String b) {}
    public record More(int a, String b) {}
    public record NullToInt(Integer a, String b) {}
    public record NullToBoolean(Boolean a, String b) {}
    public record BoxToInt(Integer a, String b) {}
    public record IntToBox(int a, String b) {}
    public record Retyped(int a, String b) {}
    public static class Fresh { public int a; public String b; }
    public static class FreshNull { public int a; public String b; }
    public static class FreshBox { public Integer a; public String b; }
    public record Inside(int a, String b, int c) {}
    public static class Holder { public int x; public Inside in; }
    record Small(int a, String b) {}
    record SmallAdded(int a, String b) {}
    record SmallReordered(int a, int b) {}
    record SmallRejects(int a, String b) {}

    /** A value of a class. */
    public static Object of(String name, int n) throws Exception {
        switch (name.substring(name.indexOf('$') + 1)) {
            case "RemovedLast": return new RemovedLast(n, Kinds.s(n), 7);
            case "RemovedFirst": return new RemovedFirst(n, Kinds.s(n), 7);
            case "RemovedMiddle": return new RemovedMiddle(n, Kinds.s(n), 7);
            case "RemovedUnsorted": return new RemovedUnsorted(n, Kinds.s(n), 7);
            case "RemovedUnsortedFirst": return new RemovedUnsortedFirst(n, Kinds.s(n), 7);
            case "RemovedTwo": return new RemovedTwo(n, Kinds.s(n), 7, n);
            case "RemovedSameTypes": return new RemovedSameTypes(n, n + 10, n + 20);
            case "Added": return new Added(n, Kinds.s(n));
            case "AddedFirst": return new AddedFirst(n, Kinds.s(n));
            case "AddedPrimitive": return new AddedPrimitive(n, Kinds.s(n));
            case "AddedPrimitiveFirst": return new AddedPrimitiveFirst(n, Kinds.s(n));
            case "AddedChar": return new AddedChar(n, Kinds.s(n));
            case "AddedAndRemoved": return new AddedAndRemoved(n, Kinds.s(n), 3);
            case "AddedFirstRemovedLast": return new AddedFirstRemovedLast(n, Kinds.s(n), 3);
            case "Reordered": return new Reordered(n, Kinds.s(n));
            case "ReorderedSameTypes": return new ReorderedSameTypes(n, n + 10);
            case "ReorderedBack": return new ReorderedBack(Kinds.s(n), n);
            case "ReorderedAdded": return new ReorderedAdded(n, Kinds.s(n));
            case "Renamed": return new Renamed(n, Kinds.s(n));
            case "RenamedAll": return new RenamedAll(n, Kinds.s(n));
            case "RejectsNull": return new RejectsNull(n, Kinds.s(n));
            case "RejectsNullKept": return new RejectsNullKept(n, null);
            case "RejectsNullNone": return new RejectsNullNone(n, Kinds.s(n));
            case "RejectsNullBoth": return new RejectsNullBoth(n, Kinds.s(n));
            case "RejectsZero": return new RejectsZero(n, Kinds.s(n));
            case "RejectsZeroFirst": return new RejectsZeroFirst(n, Kinds.s(n));
            case "RejectsSmall": return new RejectsSmall(n, Kinds.s(n));
            case "RejectsNegative": return new RejectsNegative(n, Kinds.s(n));
            case "RejectsElsewhere": return new RejectsElsewhere(n, Kinds.s(n));
            case "Copies": return new Copies(n, Kinds.s(n));
            case "Replaces": return new Replaces(n, Kinds.s(n));
            case "Trims": return new Trims(n, " x" + n);
            case "Measures": return new Measures(n, Kinds.s(n));
            case "Explicit": return new Explicit(n, Kinds.s(n));
            case "More": return new More(n, Kinds.s(n));
            case "NullToInt": return new NullToInt(null, Kinds.s(n));
            case "NullToBoolean": return new NullToBoolean(n == 1 ? true : null, Kinds.s(n));
            case "BoxToInt": return new BoxToInt(n, Kinds.s(n));
            case "IntToBox": return new IntToBox(n, Kinds.s(n));
            case "Retyped": return new Retyped(n, Kinds.s(n));
            case "Fresh": return Kinds.fill(new Fresh(), n);
            case "FreshNull": return new FreshNull();
            case "FreshBox": return new FreshBox();
            case "Holder": return Kinds.hold(new Holder(), new Inside(n, Kinds.s(n), 5));
            case "Small": return new Small(n, Kinds.s(n));
            case "SmallAdded": return new SmallAdded(n, Kinds.s(n));
            case "SmallReordered": return new SmallReordered(n, n + 10);
            case "SmallRejects": return new SmallRejects(n, Kinds.s(n));
            default: throw new IllegalArgumentException(name);
        }
    }
}
