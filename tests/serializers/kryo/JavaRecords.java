import java.util.*;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.runtime.util.EnvironmentInformation;

/**
 * Writes Java records, and a class as Kotlin makes of a data class with defaults, with Flink's serializers for them: section, name, bytes in
 * hex, class of the serializer, what the value prints, its hash code.
 *
 * <p>Compile against flink-dist of the release with Java 17; the only argument is the release, the output {@code records-VERSION.tsv}.
 */
public class JavaRecords {
    public enum Color { RED, GREEN }

    public record Point(int y, int x) {}

    public record Order(String name, long id, Integer count, boolean paid, Color color, Point at, double[] prices, char letter) {}

    public record Empty() {}

    public record Lists(List<String> tags, Map<String, Integer> counts) {}

    /** What Kotlin compiles {@code data class Person(var name: String? = null, var age: Int = 0, var at: Point? = null)} to. */
    public static class Person {
        private String name;
        private int age;
        private Point at;
        public Person() {}
        public Person(String name, int age, Point at) { this.name = name; this.age = age; this.at = at; }
        public String getName() { return name; }
        public void setName(String v) { name = v; }
        public int getAge() { return age; }
        public void setAge(int v) { age = v; }
        public Point getAt() { return at; }
        public void setAt(Point v) { at = v; }
        @Override public int hashCode() {
            return ((name == null ? 0 : name.hashCode()) * 31 + Integer.hashCode(age)) * 31 + (at == null ? 0 : at.hashCode());
        }
        @Override public String toString() { return "Person(name=" + name + ", age=" + age + ", at=" + at + ")"; }
    }

    static String hex(byte[] raw) {
        StringBuilder text = new StringBuilder();
        for (byte b : raw) text.append(String.format("%02x", b));
        return text.toString();
    }

    static <T> void section(String name, Class<T> type, T... values) throws Exception {
        TypeSerializer<T> s = TypeInformation.of(type).createSerializer(new SerializerConfigImpl());
        DataOutputSerializer out = new DataOutputSerializer(64);
        TypeSerializerSnapshot.writeVersionedSnapshot(out, s.snapshotConfiguration());
        System.out.println(name + "\tsnapshot\t" + hex(out.getCopyOfBuffer()) + "\t" + s.getClass().getSimpleName() + "\t\t");
        for (int i = 0; i < values.length; i++) {
            out.clear();
            s.serialize(values[i], out);
            String printed = String.valueOf(values[i]).replaceAll("\\[D@[0-9a-f]+", "[D");
            System.out.println(name + "\t" + i + "\t" + hex(out.getCopyOfBuffer()) + "\t\t" + printed + "\t" + values[i].hashCode());
        }
    }

    public static void main(String[] args) throws Exception {
        if (!EnvironmentInformation.getVersion().equals(args[0])) throw new IllegalStateException(EnvironmentInformation.getVersion());
        section("point", Point.class, new Point(1, -2), new Point(0, 0));
        section("order", Order.class, new Order("Zoë", 1L << 40, null, true, Color.GREEN, new Point(3, 4), new double[] {0.5}, 'é'),
                new Order(null, 0, 7, false, null, null, null, 'z'));
        section("lists", Lists.class, new Lists(new ArrayList<>(List.of("a", "b")), new HashMap<>(Map.of("k", 1))));
        section("person", Person.class, new Person("Ann", 33, new Point(5, 6)), new Person(null, 0, null));
        try { section("empty", Empty.class, new Empty()); } catch (Exception e) { System.err.println(e); }
    }
}
