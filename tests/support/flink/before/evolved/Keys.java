package evolved;

/** Classes of keys, as the old job has them, and values of them; {@code java/evolved} has those of the new job. */
public final class Keys {
    private Keys() {}

    public static class Ide { public long id; public String name;  @Override public int hashCode() { int h = Long.hashCode(id); h = 31 * h + (name == null ? 0 : name.hashCode()); return h; } @Override public boolean equals(Object o) { return o instanceof Ide && (java.util.Objects.deepEquals(id, ((Ide) o).id) && java.util.Objects.deepEquals(name, ((Ide) o).name)); } }
    public static class Changed { public long id; public String name;  @Override public int hashCode() { int h = Long.hashCode(id); h = 31 * h + (name == null ? 0 : name.hashCode()); return h; } @Override public boolean equals(Object o) { return o instanceof Changed && (java.util.Objects.deepEquals(id, ((Changed) o).id) && java.util.Objects.deepEquals(name, ((Changed) o).name)); } }
    public static class Rewritten { public long id; public String name;  @Override public int hashCode() { int h = Long.hashCode(id); h = 31 * h + (name == null ? 0 : name.hashCode()); return h; } @Override public boolean equals(Object o) { return o instanceof Rewritten && (java.util.Objects.deepEquals(id, ((Rewritten) o).id) && java.util.Objects.deepEquals(name, ((Rewritten) o).name)); } }
    public static class ObjectsHash { public long id; public String name;  @Override public int hashCode() { return java.util.Objects.hash(id, name); } @Override public boolean equals(Object o) { return o instanceof ObjectsHash && (java.util.Objects.deepEquals(id, ((ObjectsHash) o).id) && java.util.Objects.deepEquals(name, ((ObjectsHash) o).name)); } }
    public static class ToObjectsHash { public long id; public String name;  @Override public int hashCode() { int h = Long.hashCode(id); h = 31 * h + (name == null ? 0 : name.hashCode()); return h; } @Override public boolean equals(Object o) { return o instanceof ToObjectsHash && (java.util.Objects.deepEquals(id, ((ToObjectsHash) o).id) && java.util.Objects.deepEquals(name, ((ToObjectsHash) o).name)); } }
    public static class Dropped { public long id; public String name;  @Override public int hashCode() { return java.util.Objects.hash(id, name); } @Override public boolean equals(Object o) { return o instanceof Dropped && (java.util.Objects.deepEquals(id, ((Dropped) o).id) && java.util.Objects.deepEquals(name, ((Dropped) o).name)); } }
    public static class Cast { public long id; public String name;  @Override public int hashCode() { return Long.hashCode(id); } @Override public boolean equals(Object o) { return o instanceof Cast && (java.util.Objects.deepEquals(id, ((Cast) o).id) && java.util.Objects.deepEquals(name, ((Cast) o).name)); } }
    public static class CastLarge { public long id; public String name;  @Override public int hashCode() { return Long.hashCode(id); } @Override public boolean equals(Object o) { return o instanceof CastLarge && (java.util.Objects.deepEquals(id, ((CastLarge) o).id) && java.util.Objects.deepEquals(name, ((CastLarge) o).name)); } }
    public static class Loop { public long id; public String name;  @Override public int hashCode() { int h = 7; for (int i = 0; i < name.length(); i++) { h = 31 * h + name.charAt(i); } return h; } @Override public boolean equals(Object o) { return o instanceof Loop && (java.util.Objects.deepEquals(id, ((Loop) o).id) && java.util.Objects.deepEquals(name, ((Loop) o).name)); } }
    public static class LoopChanged { public long id; public String name;  @Override public int hashCode() { int h = 7; for (int i = 0; i < name.length(); i++) { h = 31 * h + name.charAt(i); } return h; } @Override public boolean equals(Object o) { return o instanceof LoopChanged && (java.util.Objects.deepEquals(id, ((LoopChanged) o).id) && java.util.Objects.deepEquals(name, ((LoopChanged) o).name)); } }
    public static class LoopToHash { public long id; public String name;  @Override public int hashCode() { int h = 0; for (int i = 0; i < name.length(); i++) { h = 31 * h + name.charAt(i); } return h; } @Override public boolean equals(Object o) { return o instanceof LoopToHash && (java.util.Objects.deepEquals(id, ((LoopToHash) o).id) && java.util.Objects.deepEquals(name, ((LoopToHash) o).name)); } }
    public static class LoopAdded { public long id; public String name;  @Override public int hashCode() { int h = Long.hashCode(id); h = 31 * h + (name == null ? 0 : name.hashCode()); return h; } @Override public boolean equals(Object o) { return o instanceof LoopAdded && (java.util.Objects.deepEquals(id, ((LoopAdded) o).id) && java.util.Objects.deepEquals(name, ((LoopAdded) o).name)); } }
    public static class Switch { public long id; public String name;  @Override public int hashCode() { switch ((int) (id % 3)) { case 0: return 5; case 1: return name.hashCode(); default: return Long.hashCode(id); } } @Override public boolean equals(Object o) { return o instanceof Switch && (java.util.Objects.deepEquals(id, ((Switch) o).id) && java.util.Objects.deepEquals(name, ((Switch) o).name)); } }
    public static class SwitchChanged { public long id; public String name;  @Override public int hashCode() { switch ((int) (id % 3)) { case 0: return 5; case 1: return name.hashCode(); default: return Long.hashCode(id); } } @Override public boolean equals(Object o) { return o instanceof SwitchChanged && (java.util.Objects.deepEquals(id, ((SwitchChanged) o).id) && java.util.Objects.deepEquals(name, ((SwitchChanged) o).name)); } }
    public static class Constant { public long id; public String name;  @Override public int hashCode() { return 1; } @Override public boolean equals(Object o) { return o instanceof Constant && (java.util.Objects.deepEquals(id, ((Constant) o).id) && java.util.Objects.deepEquals(name, ((Constant) o).name)); } }
    public static class ConstantChanged { public long id; public String name;  @Override public int hashCode() { return 1; } @Override public boolean equals(Object o) { return o instanceof ConstantChanged && (java.util.Objects.deepEquals(id, ((ConstantChanged) o).id) && java.util.Objects.deepEquals(name, ((ConstantChanged) o).name)); } }
    public static class Lower { public long id; public String name;  @Override public int hashCode() { return name.toLowerCase().hashCode(); } @Override public boolean equals(Object o) { return o instanceof Lower && (java.util.Objects.deepEquals(id, ((Lower) o).id) && java.util.Objects.deepEquals(name, ((Lower) o).name)); } }
    public static class LowerAdded { public long id; public String name;  @Override public int hashCode() { return name.hashCode(); } @Override public boolean equals(Object o) { return o instanceof LowerAdded && (java.util.Objects.deepEquals(id, ((LowerAdded) o).id) && java.util.Objects.deepEquals(name, ((LowerAdded) o).name)); } }
    public static class Cached { public long id; public String name; private transient int hash; @Override public int hashCode() { if (hash == 0) { hash = java.util.Objects.hash(id, name); } return hash; } @Override public boolean equals(Object o) { return o instanceof Cached && (java.util.Objects.deepEquals(id, ((Cached) o).id) && java.util.Objects.deepEquals(name, ((Cached) o).name)); } }
    public static class CachedChanged { public long id; public String name; private transient int hash; @Override public int hashCode() { if (hash == 0) { hash = java.util.Objects.hash(id, name); } return hash; } @Override public boolean equals(Object o) { return o instanceof CachedChanged && (java.util.Objects.deepEquals(id, ((CachedChanged) o).id) && java.util.Objects.deepEquals(name, ((CachedChanged) o).name)); } }
    public static class CachedAdded { public long id; public String name;  @Override public int hashCode() { return java.util.Objects.hash(id, name); } @Override public boolean equals(Object o) { return o instanceof CachedAdded && (java.util.Objects.deepEquals(id, ((CachedAdded) o).id) && java.util.Objects.deepEquals(name, ((CachedAdded) o).name)); } }
    public static class Salt { public long id; public String name; static final int SALT = 3; @Override public int hashCode() { return SALT + name.hashCode(); } @Override public boolean equals(Object o) { return o instanceof Salt && (java.util.Objects.deepEquals(id, ((Salt) o).id) && java.util.Objects.deepEquals(name, ((Salt) o).name)); } }
    public static class SaltChanged { public long id; public String name; static final int SALT = 3; @Override public int hashCode() { return SALT + name.hashCode(); } @Override public boolean equals(Object o) { return o instanceof SaltChanged && (java.util.Objects.deepEquals(id, ((SaltChanged) o).id) && java.util.Objects.deepEquals(name, ((SaltChanged) o).name)); } }
    public static class HelperChanged { public long id; public String name;  @Override public int hashCode() { return Helper.mix(Long.hashCode(id), name.hashCode()); } @Override public boolean equals(Object o) { return o instanceof HelperChanged && (java.util.Objects.deepEquals(id, ((HelperChanged) o).id) && java.util.Objects.deepEquals(name, ((HelperChanged) o).name)); } }
    static final class Helper { static int mix(int a, int b) { return 17 * a + b; } }
    public static class HelperSame { public long id; public String name;  @Override public int hashCode() { return HelperSame2.mix(Long.hashCode(id), name.hashCode()); } @Override public boolean equals(Object o) { return o instanceof HelperSame && (java.util.Objects.deepEquals(id, ((HelperSame) o).id) && java.util.Objects.deepEquals(name, ((HelperSame) o).name)); } }
    static final class HelperSame2 { static int mix(int a, int b) { int h = a; for (int i = 0; i < 3; i++) { h = 31 * h + b; } return h; } }
    public static class HelperLoop { public long id; public String name;  @Override public int hashCode() { return HelperLoop2.mix(Long.hashCode(id), name.hashCode()); } @Override public boolean equals(Object o) { return o instanceof HelperLoop && (java.util.Objects.deepEquals(id, ((HelperLoop) o).id) && java.util.Objects.deepEquals(name, ((HelperLoop) o).name)); } }
    static final class HelperLoop2 { static int mix(int a, int b) { int h = a; for (int i = 0; i < 3; i++) { h = 31 * h + b; } return h; } }
    public enum Level { LOW, MID, HIGH }
    public enum LevelMoved { LOW, MID, HIGH }
    public static class EnumHash { public long id; public Level level;  @Override public int hashCode() { return java.util.Objects.hash(id, level); } @Override public boolean equals(Object o) { return o instanceof EnumHash && (java.util.Objects.deepEquals(id, ((EnumHash) o).id) && java.util.Objects.deepEquals(level, ((EnumHash) o).level)); } }
    public static class EnumName { public long id; public Level level;  @Override public int hashCode() { return java.util.Objects.hash(id, level.name()); } @Override public boolean equals(Object o) { return o instanceof EnumName && (java.util.Objects.deepEquals(id, ((EnumName) o).id) && java.util.Objects.deepEquals(level, ((EnumName) o).level)); } }
    public static class EnumOrdinal { public long id; public Level level;  @Override public int hashCode() { return 31 * Long.hashCode(id) + level.ordinal(); } @Override public boolean equals(Object o) { return o instanceof EnumOrdinal && (java.util.Objects.deepEquals(id, ((EnumOrdinal) o).id) && java.util.Objects.deepEquals(level, ((EnumOrdinal) o).level)); } }
    public static class EnumOrdinalMoved { public long id; public LevelMoved level;  @Override public int hashCode() { return 31 * Long.hashCode(id) + level.ordinal(); } @Override public boolean equals(Object o) { return o instanceof EnumOrdinalMoved && (java.util.Objects.deepEquals(id, ((EnumOrdinalMoved) o).id) && java.util.Objects.deepEquals(level, ((EnumOrdinalMoved) o).level)); } }
    public static class EnumUnused { public long id; public Level level;  @Override public int hashCode() { return Long.hashCode(id); } @Override public boolean equals(Object o) { return o instanceof EnumUnused && (java.util.Objects.deepEquals(id, ((EnumUnused) o).id) && java.util.Objects.deepEquals(level, ((EnumUnused) o).level)); } }
    public static class EnumAdded { public long id; public Level level;  @Override public int hashCode() { return Long.hashCode(id); } @Override public boolean equals(Object o) { return o instanceof EnumAdded && (java.util.Objects.deepEquals(id, ((EnumAdded) o).id) && java.util.Objects.deepEquals(level, ((EnumAdded) o).level)); } }
    public static class Plain { public int x; @Override public boolean equals(Object o) { return o instanceof Plain && ((Plain) o).x == x; } }
    public static class ObjectHash { public long id; public Plain part;  @Override public int hashCode() { return java.util.Objects.hash(id, part); } @Override public boolean equals(Object o) { return o instanceof ObjectHash && (java.util.Objects.deepEquals(id, ((ObjectHash) o).id) && java.util.Objects.deepEquals(part, ((ObjectHash) o).part)); } }
    public static class Part { public int x; @Override public int hashCode() { return x; } @Override public boolean equals(Object o) { return o instanceof Part && ((Part) o).x == x; } }
    public static class PartChanged { public int x; @Override public int hashCode() { return x; } @Override public boolean equals(Object o) { return o instanceof PartChanged && ((PartChanged) o).x == x; } }
    public static class Nested { public long id; public Part part;  @Override public int hashCode() { return java.util.Objects.hash(id, part); } @Override public boolean equals(Object o) { return o instanceof Nested && (java.util.Objects.deepEquals(id, ((Nested) o).id) && java.util.Objects.deepEquals(part, ((Nested) o).part)); } }
    public static class NestedChanged { public long id; public PartChanged part;  @Override public int hashCode() { return java.util.Objects.hash(id, part); } @Override public boolean equals(Object o) { return o instanceof NestedChanged && (java.util.Objects.deepEquals(id, ((NestedChanged) o).id) && java.util.Objects.deepEquals(part, ((NestedChanged) o).part)); } }
    public static class NestedRewritten { public long id; public Part part;  @Override public int hashCode() { return java.util.Objects.hash(id, part); } @Override public boolean equals(Object o) { return o instanceof NestedRewritten && (java.util.Objects.deepEquals(id, ((NestedRewritten) o).id) && java.util.Objects.deepEquals(part, ((NestedRewritten) o).part)); } }
    public static class ArrayHash { public long id; public int[] parts;  @Override public int hashCode() { return java.util.Objects.hash(id, parts); } @Override public boolean equals(Object o) { return o instanceof ArrayHash && (java.util.Objects.deepEquals(id, ((ArrayHash) o).id) && java.util.Objects.deepEquals(parts, ((ArrayHash) o).parts)); } }
    public static class ArrayContent { public long id; public int[] parts;  @Override public int hashCode() { return 31 * Long.hashCode(id) + java.util.Arrays.hashCode(parts); } @Override public boolean equals(Object o) { return o instanceof ArrayContent && (java.util.Objects.deepEquals(id, ((ArrayContent) o).id) && java.util.Objects.deepEquals(parts, ((ArrayContent) o).parts)); } }
    public static class ArrayChanged { public long id; public int[] parts;  @Override public int hashCode() { return 31 * Long.hashCode(id) + java.util.Arrays.hashCode(parts); } @Override public boolean equals(Object o) { return o instanceof ArrayChanged && (java.util.Objects.deepEquals(id, ((ArrayChanged) o).id) && java.util.Objects.deepEquals(parts, ((ArrayChanged) o).parts)); } }
    public static class ClassHash { public long id; public String name;  @Override public int hashCode() { return java.util.Objects.hash(getClass(), id, name); } @Override public boolean equals(Object o) { return o instanceof ClassHash && (java.util.Objects.deepEquals(id, ((ClassHash) o).id) && java.util.Objects.deepEquals(name, ((ClassHash) o).name)); } }
    public static class ClassNameHash { public long id; public String name;  @Override public int hashCode() { return java.util.Objects.hash(getClass().getName(), id, name); } @Override public boolean equals(Object o) { return o instanceof ClassNameHash && (java.util.Objects.deepEquals(id, ((ClassNameHash) o).id) && java.util.Objects.deepEquals(name, ((ClassNameHash) o).name)); } }
    public static class Identity { public long id; public String name;  @Override public int hashCode() { return System.identityHashCode(this); } @Override public boolean equals(Object o) { return o instanceof Identity && (java.util.Objects.deepEquals(id, ((Identity) o).id) && java.util.Objects.deepEquals(name, ((Identity) o).name)); } }
    public static class SuperHash { public long id; public String name;  @Override public int hashCode() { return super.hashCode(); } @Override public boolean equals(Object o) { return o instanceof SuperHash && (java.util.Objects.deepEquals(id, ((SuperHash) o).id) && java.util.Objects.deepEquals(name, ((SuperHash) o).name)); } }
    public static class EqualsWider { public long id; public String name;  @Override public int hashCode() { return Long.hashCode(id); } @Override public boolean equals(Object o) { return o instanceof EqualsWider && (id == ((EqualsWider) o).id && name.equals(((EqualsWider) o).name)); } }
    public static class EqualsNever { public long id; public String name;  @Override public int hashCode() { return Long.hashCode(id); } @Override public boolean equals(Object o) { return o instanceof EqualsNever && (java.util.Objects.deepEquals(id, ((EqualsNever) o).id) && java.util.Objects.deepEquals(name, ((EqualsNever) o).name)); } }
    public static class EqualsRewritten { public long id; public String name;  @Override public int hashCode() { return Long.hashCode(id); } @Override public boolean equals(Object o) { return o instanceof EqualsRewritten && (java.util.Objects.deepEquals(id, ((EqualsRewritten) o).id) && java.util.Objects.deepEquals(name, ((EqualsRewritten) o).name)); } }
    public static class Doubles { public double x; public boolean b;  @Override public int hashCode() { return java.util.Objects.hash(x, b); } @Override public boolean equals(Object o) { return o instanceof Doubles && (java.util.Objects.deepEquals(x, ((Doubles) o).x) && java.util.Objects.deepEquals(b, ((Doubles) o).b)); } }
    public static class Decimal { public java.math.BigDecimal d; public String name;  @Override public int hashCode() { return java.util.Objects.hash(d, name); } @Override public boolean equals(Object o) { return o instanceof Decimal && (java.util.Objects.deepEquals(d, ((Decimal) o).d) && java.util.Objects.deepEquals(name, ((Decimal) o).name)); } }
    public static class Lists { public java.util.List<String> names; public long id;  @Override public int hashCode() { return java.util.Objects.hash(names, id); } @Override public boolean equals(Object o) { return o instanceof Lists && (java.util.Objects.deepEquals(names, ((Lists) o).names) && java.util.Objects.deepEquals(id, ((Lists) o).id)); } }
    public static class ListsChanged { public java.util.List<String> names; public long id;  @Override public int hashCode() { return java.util.Objects.hash(names, id); } @Override public boolean equals(Object o) { return o instanceof ListsChanged && (java.util.Objects.deepEquals(names, ((ListsChanged) o).names) && java.util.Objects.deepEquals(id, ((ListsChanged) o).id)); } }
    public static class Uuid { public java.util.UUID uuid; public long id;  @Override public int hashCode() { return java.util.Objects.hash(uuid, id); } @Override public boolean equals(Object o) { return o instanceof Uuid && (java.util.Objects.deepEquals(uuid, ((Uuid) o).uuid) && java.util.Objects.deepEquals(id, ((Uuid) o).id)); } }
    public static class UuidChanged { public java.util.UUID uuid; public long id;  @Override public int hashCode() { return java.util.Objects.hash(uuid, id); } @Override public boolean equals(Object o) { return o instanceof UuidChanged && (java.util.Objects.deepEquals(uuid, ((UuidChanged) o).uuid) && java.util.Objects.deepEquals(id, ((UuidChanged) o).id)); } }
    public record Rec(long id, String name) {}
    public record RecOverridden(long id, String name) {}
    public record RecSwapped(int a, int b) {}
    public record RecEnum(long id, Level level) {}
    public record RecArray(long id, int[] parts) {}
    public static class BaseKey { public long id; @Override public int hashCode() { return Long.hashCode(id); } @Override public boolean equals(Object o) { return o instanceof BaseKey && ((BaseKey) o).id == id; } }
    public static class Inherited extends BaseKey { public String name; }
    public static final class KryoIde { public long id; public String name;  @Override public int hashCode() { int h = Long.hashCode(id); h = 31 * h + (name == null ? 0 : name.hashCode()); return h; } @Override public boolean equals(Object o) { return o instanceof KryoIde && (java.util.Objects.deepEquals(id, ((KryoIde) o).id) && java.util.Objects.deepEquals(name, ((KryoIde) o).name)); } }
    public static final class KryoChanged { public long id; public String name;  @Override public int hashCode() { int h = Long.hashCode(id); h = 31 * h + (name == null ? 0 : name.hashCode()); return h; } @Override public boolean equals(Object o) { return o instanceof KryoChanged && (java.util.Objects.deepEquals(id, ((KryoChanged) o).id) && java.util.Objects.deepEquals(name, ((KryoChanged) o).name)); } }
    public static final class KryoLoop { public long id; public String name;  @Override public int hashCode() { int h = 7; for (int i = 0; i < name.length(); i++) { h = 31 * h + name.charAt(i); } return h; } @Override public boolean equals(Object o) { return o instanceof KryoLoop && (java.util.Objects.deepEquals(id, ((KryoLoop) o).id) && java.util.Objects.deepEquals(name, ((KryoLoop) o).name)); } }
    public static final class KryoLoopChanged { public long id; public String name;  @Override public int hashCode() { int h = 7; for (int i = 0; i < name.length(); i++) { h = 31 * h + name.charAt(i); } return h; } @Override public boolean equals(Object o) { return o instanceof KryoLoopChanged && (java.util.Objects.deepEquals(id, ((KryoLoopChanged) o).id) && java.util.Objects.deepEquals(name, ((KryoLoopChanged) o).name)); } }
    public static final class KryoEnum { public long id; public Level level;  @Override public int hashCode() { return java.util.Objects.hash(id, level); } @Override public boolean equals(Object o) { return o instanceof KryoEnum && (java.util.Objects.deepEquals(id, ((KryoEnum) o).id) && java.util.Objects.deepEquals(level, ((KryoEnum) o).level)); } }

    /** A value of a class. */
    public static Object of(String name, int n) throws Exception {
        switch (name.substring(name.indexOf('$') + 1)) {
            case "Ide": return Kinds.vary(new Ide(), n);
            case "Changed": return Kinds.vary(new Changed(), n);
            case "Rewritten": return Kinds.vary(new Rewritten(), n);
            case "ObjectsHash": return Kinds.vary(new ObjectsHash(), n);
            case "ToObjectsHash": return Kinds.vary(new ToObjectsHash(), n);
            case "Dropped": return Kinds.vary(new Dropped(), n);
            case "Cast": return Kinds.vary(new Cast(), n);
            case "CastLarge": return Kinds.vary(new CastLarge(), n);
            case "Loop": return Kinds.vary(new Loop(), n);
            case "LoopChanged": return Kinds.vary(new LoopChanged(), n);
            case "LoopToHash": return Kinds.vary(new LoopToHash(), n);
            case "LoopAdded": return Kinds.vary(new LoopAdded(), n);
            case "Switch": return Kinds.vary(new Switch(), n);
            case "SwitchChanged": return Kinds.vary(new SwitchChanged(), n);
            case "Constant": return Kinds.vary(new Constant(), n);
            case "ConstantChanged": return Kinds.vary(new ConstantChanged(), n);
            case "Lower": return Kinds.vary(new Lower(), n);
            case "LowerAdded": return Kinds.vary(new LowerAdded(), n);
            case "Cached": return Kinds.vary(new Cached(), n);
            case "CachedChanged": return Kinds.vary(new CachedChanged(), n);
            case "CachedAdded": return Kinds.vary(new CachedAdded(), n);
            case "Salt": return Kinds.vary(new Salt(), n);
            case "SaltChanged": return Kinds.vary(new SaltChanged(), n);
            case "HelperChanged": return Kinds.vary(new HelperChanged(), n);
            case "HelperSame": return Kinds.vary(new HelperSame(), n);
            case "HelperLoop": return Kinds.vary(new HelperLoop(), n);
            case "EnumHash": return Kinds.vary(new EnumHash(), n);
            case "EnumName": return Kinds.vary(new EnumName(), n);
            case "EnumOrdinal": return Kinds.vary(new EnumOrdinal(), n);
            case "EnumOrdinalMoved": return Kinds.vary(new EnumOrdinalMoved(), n);
            case "EnumUnused": return Kinds.vary(new EnumUnused(), n);
            case "EnumAdded": return Kinds.vary(new EnumAdded(), n);
            case "ObjectHash": return Kinds.vary(new ObjectHash(), n);
            case "Nested": return Kinds.vary(new Nested(), n);
            case "NestedChanged": return Kinds.vary(new NestedChanged(), n);
            case "NestedRewritten": return Kinds.vary(new NestedRewritten(), n);
            case "ArrayHash": return Kinds.vary(new ArrayHash(), n);
            case "ArrayContent": return Kinds.vary(new ArrayContent(), n);
            case "ArrayChanged": return Kinds.vary(new ArrayChanged(), n);
            case "ClassHash": return Kinds.vary(new ClassHash(), n);
            case "ClassNameHash": return Kinds.vary(new ClassNameHash(), n);
            case "Identity": return Kinds.vary(new Identity(), n);
            case "SuperHash": return Kinds.vary(new SuperHash(), n);
            case "EqualsWider": return Kinds.vary(new EqualsWider(), n);
            case "EqualsNever": return Kinds.vary(new EqualsNever(), n);
            case "EqualsRewritten": return Kinds.vary(new EqualsRewritten(), n);
            case "Doubles": return Kinds.vary(new Doubles(), n);
            case "Decimal": return Kinds.vary(new Decimal(), n);
            case "Lists": return Kinds.vary(new Lists(), n);
            case "ListsChanged": return Kinds.vary(new ListsChanged(), n);
            case "Uuid": return Kinds.vary(new Uuid(), n);
            case "UuidChanged": return Kinds.vary(new UuidChanged(), n);
            case "Rec": return new Rec(n, Kinds.s(n));
            case "RecOverridden": return new RecOverridden(n, Kinds.s(n));
            case "RecSwapped": return new RecSwapped(n, n + 7);
            case "RecEnum": return new RecEnum(n, Level.values()[n % 3]);
            case "RecArray": return new RecArray(n, new int[] {n});
            case "Inherited": return Kinds.vary(new Inherited(), n);
            case "KryoIde": return Kinds.vary(new KryoIde(), n);
            case "KryoChanged": return Kinds.vary(new KryoChanged(), n);
            case "KryoLoop": return Kinds.vary(new KryoLoop(), n);
            case "KryoLoopChanged": return Kinds.vary(new KryoLoopChanged(), n);
            case "KryoEnum": return Kinds.vary(new KryoEnum(), n);
            case "InTuple": return org.apache.flink.api.java.tuple.Tuple2.of(Kinds.vary(new Changed(), n), (long) n);
            case "InTupleSame": return org.apache.flink.api.java.tuple.Tuple2.of(Kinds.vary(new Ide(), n), (long) n);
            default: throw new IllegalArgumentException(name);
        }
    }
}
