package evolved;

/** Classes with collections that Kryo may not read, as the new job has them; {@code before/evolved} has those of the old job. */
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
    public enum LevelMoved { HIGH, LOW, MID }
    public enum LevelGrown { LOW, MID, HIGH, TOP }
    public enum LevelLost { LOW, MID }
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
}
