package evolved;

/** Records as the new job has them; {@code before/evolved} has those of the old job. */
public final class Records {
    private Records() {}

    public record RemovedLast(int a, String b) {}
    public record RemovedFirst(String b, long c) {}
    public record RemovedMiddle(int a, long c) {}
    public record RemovedUnsorted(int z, String a) {}
    public record RemovedUnsortedFirst(long m, String a) {}
    public record RemovedTwo(int a, int d) {}
    public record RemovedSameTypes(int b, int c) {}
    public record Added(int a, String b, String c) {}
    public record AddedFirst(String a, int b, String c) {}
    public record AddedPrimitive(int a, String b, double c) {}
    public record AddedPrimitiveFirst(boolean a, int b, String c) {}
    public record AddedChar(int b, char a, String c) {}
    public record AddedAndRemoved(int a, long c, String d) {}
    public record AddedFirstRemovedLast(int a, int b, String c) {}
    public record Reordered(String b, int a) {}
    public record ReorderedSameTypes(int b, int a) {}
    public record ReorderedBack(int a, String b) {}
    public record ReorderedAdded(String b, int a, int c) {}
    public record Renamed(int a, String x) {}
    public record RenamedAll(int x, String y) {}
    public record RejectsNull(int a, String b, String c) { public RejectsNull { java.util.Objects.requireNonNull(c); } }
    public record RejectsNullKept(int a, String b) { public RejectsNullKept { java.util.Objects.requireNonNull(b); } }
    public record RejectsNullNone(int a, String b) { public RejectsNullNone { java.util.Objects.requireNonNull(b); } }
    public record RejectsNullBoth(int a, String b) { public RejectsNullBoth { java.util.Objects.requireNonNull(b); } }
    public record RejectsZero(int a, String b, int c) { public RejectsZero { if (c == 0) throw new IllegalArgumentException(); } }
    public record RejectsZeroFirst(int a, int b, String c) { public RejectsZeroFirst { if (a <= 0) { throw new IllegalArgumentException("a"); } } }
    public record RejectsSmall(int a, String b) { public RejectsSmall { if (a < 100) throw new IllegalArgumentException(); } }
    public record RejectsNegative(int a, String b) { public RejectsNegative { if (a < 0) throw new IllegalArgumentException(); } }
    public record RejectsElsewhere(int a, String b, String c) { public RejectsElsewhere { Checks.present(c); } }
    public record Copies(int a, String b, java.util.List<String> c) { public Copies { c = java.util.List.copyOf(c); } }
    public record Replaces(int a, String b, String c) { public Replaces { c = c == null ? "none" : c; } }
    public record Trims(int a, String b) { public Trims { b = b.trim(); } }
    public record Measures(int a, String b, String c) { public Measures { if (c.length() > 5) throw new IllegalArgumentException(); } }
    public record Explicit(int a, String b, String c) { public Explicit(int a, String b, String c) { this.a = a; this.b = b; this.c = c; } }
    public record More(int a, String b) { public More(int a) { this(a, ""); } public int twice() { return 2 * a; } }
    public record NullToInt(int a, String b) {}
    public record NullToBoolean(boolean a, String b) {}
    public record BoxToInt(int a, String b) {}
    public record IntToBox(Integer a, String b) {}
    public record Retyped(long a, String b) {}
    public record Fresh(int a, String b) { public Fresh { java.util.Objects.requireNonNull(b); } }
    public record FreshNull(int a, String b) { public FreshNull { java.util.Objects.requireNonNull(b); } }
    public record FreshBox(int a, String b) { }
    public record Inside(int a, int c) {}
    public static class Holder { public int x; public Inside in; }
    record Small(int a, String b) {}
    record SmallAdded(int a, String b, int c) {}
    record SmallReordered(int b, int a) {}
    record SmallRejects(int a, String b) { SmallRejects { if (a < 100) throw new IllegalArgumentException(); } }
    static final class Checks { static void present(Object o) { if (o == null) throw new IllegalStateException("missing"); } }
}
