package evolved;

/** Classes with collections that Kryo may not read, as the old job has them, and values of them; {@code java/evolved} has those of the new job. */
public final class Unreadable {
    private Unreadable() {}

    public static final class KryoListOf { private int a; private Object held; }
    public static final class KryoListOfThree { private int a; private Object held; }
    public static final class KryoListOfOne { private int a; private Object held; }
    public static final class KryoListOfNone { private int a; private Object held; }
    public static final class KryoSetOf { private int a; private Object held; }
    public static final class KryoMapOf { private int a; private Object held; }
    public static final class KryoMapOfTwo { private int a; private Object held; }
    public static final class KryoUnmodifiableList { private int a; private Object held; }
    public static final class KryoUnmodifiableLinked { private int a; private Object held; }
    public static final class KryoUnmodifiableMap { private int a; private Object held; }
    public static final class KryoUnmodifiableSet { private int a; private Object held; }
    public static final class KryoUnmodifiableCollection { private int a; private Object held; }
    public static final class KryoSynchronizedList { private int a; private Object held; }
    public static final class KryoSynchronizedMap { private int a; private Object held; }
    public static final class KryoCheckedList { private int a; private Object held; }
    public static final class KryoSingletonList { private int a; private Object held; }
    public static final class KryoSingletonMap { private int a; private Object held; }
    public static final class KryoSingleton { private int a; private Object held; }
    public static final class KryoEmptyList { private int a; private Object held; }
    public static final class KryoEmptyMap { private int a; private Object held; }
    public static final class KryoNCopies { private int a; private Object held; }
    public static final class KryoAsList { private int a; private Object held; }
    public static final class KryoSubList { private int a; private Object held; }
    public static final class KryoKeySet { private int a; private Object held; }
    public static final class KryoValuesView { private int a; private Object held; }
    public static final class KryoEntrySet { private int a; private Object held; }
    public static final class KryoStreamToList { private int a; private Object held; }
    public static final class KryoTreeKeySet { private int a; private Object held; }
    public static final class KryoHeadMap { private int a; private Object held; }
    public static final class KryoOptional { private int a; private Object held; }
    public static final class KryoTreeMap { private int a; private Object held; }
    public static final class KryoTreeSetReverse { private int a; private Object held; }
    public static final class KryoPriorityQueue { private int a; private Object held; }
    public static final class KryoArrayDeque { private int a; private Object held; }
    public static final class KryoLinkedHashMap { private int a; private Object held; }
    public static final class KryoConcurrentMap { private int a; private Object held; }
    public static final class KryoIdentity { private int a; private Object held; }
    public static final class KryoVector { private int a; private Object held; }
    public static final class KryoCopyOnWrite { private int a; private Object held; }
    public static final class KryoAtomicLong { private int a; private Object held; }
    public static final class KryoBitSet { private int a; private Object held; }
    public static final class KryoSimpleEntry { private int a; private Object held; }
    public static final class KryoMapEntry { private int a; private Object held; }
    public static final class KryoLocale { private int a; private Object held; }
    public static final class KryoDuration { private int a; private Object held; }
    public static class FieldListOf { public int a; public java.util.List<String> held; }
    public static class FieldUnmodifiableList { public int a; public java.util.List<String> held; }
    public static class FieldAsList { public int a; public java.util.List<String> held; }
    public static class FieldSubList { public int a; public java.util.List<String> held; }
    public static final class KryoCycle { private int a; private Object held; }
    public static final class KryoShared { private Object a; private Object held; }
    public enum Level { LOW, MID, HIGH }
    public enum LevelMoved { LOW, MID, HIGH }
    public enum LevelGrown { LOW, MID, HIGH }
    public enum LevelLost { LOW, MID, HIGH }
    public static final class KryoSetOfLevel { private int a; private java.util.EnumSet<Level> held; }
    public static final class KryoMapOfLevel { private int a; private java.util.EnumMap<Level, String> held; }
    public static class FieldSetOfLevel { public int a; public java.util.EnumSet<Level> held; }
    public static final class KryoOneOfLevel { private int a; private Level held; }
    public static final class KryoSetOfLevelMoved { private int a; private java.util.EnumSet<LevelMoved> held; }
    public static final class KryoMapOfLevelMoved { private int a; private java.util.EnumMap<LevelMoved, String> held; }
    public static class FieldSetOfLevelMoved { public int a; public java.util.EnumSet<LevelMoved> held; }
    public static final class KryoOneOfLevelMoved { private int a; private LevelMoved held; }
    public static final class KryoSetOfLevelGrown { private int a; private java.util.EnumSet<LevelGrown> held; }
    public static final class KryoMapOfLevelGrown { private int a; private java.util.EnumMap<LevelGrown, String> held; }
    public static class FieldSetOfLevelGrown { public int a; public java.util.EnumSet<LevelGrown> held; }
    public static final class KryoOneOfLevelGrown { private int a; private LevelGrown held; }
    public static final class KryoSetOfLevelLost { private int a; private java.util.EnumSet<LevelLost> held; }
    public static final class KryoMapOfLevelLost { private int a; private java.util.EnumMap<LevelLost, String> held; }
    public static class FieldSetOfLevelLost { public int a; public java.util.EnumSet<LevelLost> held; }
    public static final class KryoOneOfLevelLost { private int a; private LevelLost held; }

    /** A value of a class. */
    public static Object of(String name, int n) throws Exception {
        switch (name.substring(name.indexOf('$') + 1)) {
            case "KryoListOf": return Kinds.hold(new KryoListOf(), java.util.List.of("a", Kinds.s(n)));
            case "KryoListOfThree": return Kinds.hold(new KryoListOfThree(), java.util.List.of("a", Kinds.s(n), "c"));
            case "KryoListOfOne": return Kinds.hold(new KryoListOfOne(), java.util.List.of(Kinds.s(n)));
            case "KryoListOfNone": return Kinds.hold(new KryoListOfNone(), java.util.List.of());
            case "KryoSetOf": return Kinds.hold(new KryoSetOf(), java.util.Set.of("a", Kinds.s(n)));
            case "KryoMapOf": return Kinds.hold(new KryoMapOf(), java.util.Map.of("a", Kinds.s(n)));
            case "KryoMapOfTwo": return Kinds.hold(new KryoMapOfTwo(), java.util.Map.of("a", Kinds.s(n), "b", 5));
            case "KryoUnmodifiableList": return Kinds.hold(new KryoUnmodifiableList(), java.util.Collections.unmodifiableList(new java.util.ArrayList<>(java.util.List.of(Kinds.s(n)))));
            case "KryoUnmodifiableLinked": return Kinds.hold(new KryoUnmodifiableLinked(), java.util.Collections.unmodifiableList(new java.util.LinkedList<>(java.util.List.of(Kinds.s(n)))));
            case "KryoUnmodifiableMap": return Kinds.hold(new KryoUnmodifiableMap(), java.util.Collections.unmodifiableMap(new java.util.HashMap<>(java.util.Map.of("a", Kinds.s(n)))));
            case "KryoUnmodifiableSet": return Kinds.hold(new KryoUnmodifiableSet(), java.util.Collections.unmodifiableSet(new java.util.HashSet<>(java.util.Set.of("a", Kinds.s(n)))));
            case "KryoUnmodifiableCollection": return Kinds.hold(new KryoUnmodifiableCollection(), java.util.Collections.unmodifiableCollection(new java.util.ArrayList<>(java.util.List.of(Kinds.s(n)))));
            case "KryoSynchronizedList": return Kinds.hold(new KryoSynchronizedList(), java.util.Collections.synchronizedList(new java.util.ArrayList<>(java.util.List.of(Kinds.s(n)))));
            case "KryoSynchronizedMap": return Kinds.hold(new KryoSynchronizedMap(), java.util.Collections.synchronizedMap(new java.util.HashMap<>(java.util.Map.of("a", Kinds.s(n)))));
            case "KryoCheckedList": return Kinds.hold(new KryoCheckedList(), java.util.Collections.checkedList(new java.util.ArrayList<>(java.util.List.of(Kinds.s(n))), String.class));
            case "KryoSingletonList": return Kinds.hold(new KryoSingletonList(), java.util.Collections.singletonList(Kinds.s(n)));
            case "KryoSingletonMap": return Kinds.hold(new KryoSingletonMap(), java.util.Collections.singletonMap("a", Kinds.s(n)));
            case "KryoSingleton": return Kinds.hold(new KryoSingleton(), java.util.Collections.singleton(Kinds.s(n)));
            case "KryoEmptyList": return Kinds.hold(new KryoEmptyList(), java.util.Collections.emptyList());
            case "KryoEmptyMap": return Kinds.hold(new KryoEmptyMap(), java.util.Collections.emptyMap());
            case "KryoNCopies": return Kinds.hold(new KryoNCopies(), java.util.Collections.nCopies(3, Kinds.s(n)));
            case "KryoAsList": return Kinds.hold(new KryoAsList(), java.util.Arrays.asList("a", Kinds.s(n)));
            case "KryoSubList": return Kinds.hold(new KryoSubList(), new java.util.ArrayList<>(java.util.List.of("a", Kinds.s(n), "c")).subList(1, 3));
            case "KryoKeySet": return Kinds.hold(new KryoKeySet(), new java.util.HashMap<>(java.util.Map.of("a", Kinds.s(n))).keySet());
            case "KryoValuesView": return Kinds.hold(new KryoValuesView(), new java.util.HashMap<>(java.util.Map.of("a", Kinds.s(n))).values());
            case "KryoEntrySet": return Kinds.hold(new KryoEntrySet(), new java.util.ArrayList<>(new java.util.HashMap<>(java.util.Map.of("a", Kinds.s(n))).entrySet()));
            case "KryoStreamToList": return Kinds.hold(new KryoStreamToList(), java.util.stream.Stream.of("a", Kinds.s(n)).toList());
            case "KryoTreeKeySet": return Kinds.hold(new KryoTreeKeySet(), new java.util.TreeMap<>(java.util.Map.of("a", Kinds.s(n))).keySet());
            case "KryoHeadMap": return Kinds.hold(new KryoHeadMap(), new java.util.TreeMap<>(java.util.Map.of("a", Kinds.s(n))).headMap("z"));
            case "KryoOptional": return Kinds.hold(new KryoOptional(), java.util.Optional.of(Kinds.s(n)));
            case "KryoTreeMap": return Kinds.hold(new KryoTreeMap(), new java.util.TreeMap<>(java.util.Map.of("a", Kinds.s(n))));
            case "KryoTreeSetReverse": return Kinds.hold(new KryoTreeSetReverse(), new java.util.TreeSet<>(java.util.Comparator.reverseOrder()));
            case "KryoPriorityQueue": return Kinds.hold(new KryoPriorityQueue(), new java.util.PriorityQueue<>(java.util.List.of(5, n)));
            case "KryoArrayDeque": return Kinds.hold(new KryoArrayDeque(), new java.util.ArrayDeque<>(java.util.List.of("a", Kinds.s(n))));
            case "KryoLinkedHashMap": return Kinds.hold(new KryoLinkedHashMap(), new java.util.LinkedHashMap<>(java.util.Map.of("a", Kinds.s(n))));
            case "KryoConcurrentMap": return Kinds.hold(new KryoConcurrentMap(), new java.util.concurrent.ConcurrentHashMap<>(java.util.Map.of("a", Kinds.s(n))));
            case "KryoIdentity": return Kinds.hold(new KryoIdentity(), Kinds.identity(n));
            case "KryoVector": return Kinds.hold(new KryoVector(), new java.util.Vector<>(java.util.List.of(Kinds.s(n))));
            case "KryoCopyOnWrite": return Kinds.hold(new KryoCopyOnWrite(), new java.util.concurrent.CopyOnWriteArrayList<>(java.util.List.of(Kinds.s(n))));
            case "KryoAtomicLong": return Kinds.hold(new KryoAtomicLong(), new java.util.concurrent.atomic.AtomicLong(n));
            case "KryoBitSet": return Kinds.hold(new KryoBitSet(), java.util.BitSet.valueOf(new long[] {n}));
            case "KryoSimpleEntry": return Kinds.hold(new KryoSimpleEntry(), new java.util.AbstractMap.SimpleEntry<>("a", Kinds.s(n)));
            case "KryoMapEntry": return Kinds.hold(new KryoMapEntry(), java.util.Map.entry("a", Kinds.s(n)));
            case "KryoLocale": return Kinds.hold(new KryoLocale(), java.util.Locale.GERMANY);
            case "KryoDuration": return Kinds.hold(new KryoDuration(), java.time.Duration.ofSeconds(n));
            case "FieldListOf": return Kinds.hold(new FieldListOf(), java.util.List.of("a", Kinds.s(n)));
            case "FieldUnmodifiableList": return Kinds.hold(new FieldUnmodifiableList(), java.util.Collections.unmodifiableList(new java.util.ArrayList<>(java.util.List.of(Kinds.s(n)))));
            case "FieldAsList": return Kinds.hold(new FieldAsList(), java.util.Arrays.asList("a", Kinds.s(n)));
            case "FieldSubList": return Kinds.hold(new FieldSubList(), new java.util.ArrayList<>(java.util.List.of("a", Kinds.s(n), "c")).subList(1, 3));
            case "KryoCycle": return Kinds.cycle(new KryoCycle());
            case "KryoShared": return Kinds.share(new KryoShared());
            case "KryoSetOfLevel": return Kinds.hold(new KryoSetOfLevel(), java.util.EnumSet.of(Level.MID, Level.HIGH));
            case "KryoMapOfLevel": return Kinds.hold(new KryoMapOfLevel(), new java.util.EnumMap<>(java.util.Map.of(Level.MID, Kinds.s(n), Level.HIGH, "h")));
            case "FieldSetOfLevel": return Kinds.hold(new FieldSetOfLevel(), java.util.EnumSet.of(Level.MID, Level.HIGH));
            case "KryoOneOfLevel": return Kinds.hold(new KryoOneOfLevel(), Level.HIGH);
            case "KryoSetOfLevelMoved": return Kinds.hold(new KryoSetOfLevelMoved(), java.util.EnumSet.of(LevelMoved.MID, LevelMoved.HIGH));
            case "KryoMapOfLevelMoved": return Kinds.hold(new KryoMapOfLevelMoved(), new java.util.EnumMap<>(java.util.Map.of(LevelMoved.MID, Kinds.s(n), LevelMoved.HIGH, "h")));
            case "FieldSetOfLevelMoved": return Kinds.hold(new FieldSetOfLevelMoved(), java.util.EnumSet.of(LevelMoved.MID, LevelMoved.HIGH));
            case "KryoOneOfLevelMoved": return Kinds.hold(new KryoOneOfLevelMoved(), LevelMoved.HIGH);
            case "KryoSetOfLevelGrown": return Kinds.hold(new KryoSetOfLevelGrown(), java.util.EnumSet.of(LevelGrown.MID, LevelGrown.HIGH));
            case "KryoMapOfLevelGrown": return Kinds.hold(new KryoMapOfLevelGrown(), new java.util.EnumMap<>(java.util.Map.of(LevelGrown.MID, Kinds.s(n), LevelGrown.HIGH, "h")));
            case "FieldSetOfLevelGrown": return Kinds.hold(new FieldSetOfLevelGrown(), java.util.EnumSet.of(LevelGrown.MID, LevelGrown.HIGH));
            case "KryoOneOfLevelGrown": return Kinds.hold(new KryoOneOfLevelGrown(), LevelGrown.HIGH);
            case "KryoSetOfLevelLost": return Kinds.hold(new KryoSetOfLevelLost(), java.util.EnumSet.of(LevelLost.MID, LevelLost.HIGH));
            case "KryoMapOfLevelLost": return Kinds.hold(new KryoMapOfLevelLost(), new java.util.EnumMap<>(java.util.Map.of(LevelLost.MID, Kinds.s(n), LevelLost.HIGH, "h")));
            case "FieldSetOfLevelLost": return Kinds.hold(new FieldSetOfLevelLost(), java.util.EnumSet.of(LevelLost.MID, LevelLost.HIGH));
            case "KryoOneOfLevelLost": return Kinds.hold(new KryoOneOfLevelLost(), LevelLost.HIGH);
            default: throw new IllegalArgumentException(name);
        }
    }
}
