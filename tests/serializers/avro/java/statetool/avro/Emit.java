package statetool.avro;

import java.io.IOException;
import java.lang.reflect.Array;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.StringJoiner;
import java.util.UUID;
import java.util.stream.Collectors;
import org.apache.avro.LogicalTypes;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericFixed;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.formats.avro.utils.DataOutputEncoder;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;

/** Writes one case: the snapshot, the values as Flink's AvroSerializer writes them, and what they are, told from the objects. */
final class Emit {
    private final Path root;

    Emit(Path root) {
        this.root = root;
    }

    <T> void write(String name, TypeSerializer<T> serializer, GenericData model, Schema schema, List<T> values) throws Exception {
        DataOutputSerializer snapshot = new DataOutputSerializer(256);
        TypeSerializerSnapshot.writeVersionedSnapshot(snapshot, serializer.snapshotConfiguration());
        write(name, snapshot.getCopyOfBuffer(), serializer, model, schema, values);
    }

    <T> void write(String name, byte[] snapshot, TypeSerializer<T> serializer, GenericData model, Schema schema, List<T> values)
            throws Exception {
        DataInputDeserializer given = new DataInputDeserializer(snapshot);
        TypeSerializerSnapshot<T> read = TypeSerializerSnapshot.readVersionedSnapshot(given, Emit.class.getClassLoader());
        if (given.available() != 0) {
            throw new IllegalStateException(name + ": Flink leaves a part of the snapshot");
        }
        TypeSerializer<T> restored = read.restoreSerializer();
        DataOutputSerializer data = new DataOutputSerializer(1024);
        List<Integer> offsets = new ArrayList<>();
        List<String> hashes = new ArrayList<>();
        List<String> groups = new ArrayList<>();
        List<String> plain = new ArrayList<>();
        for (T value : values) {
            int start = data.length();
            offsets.add(start);
            serializer.serialize(value, data);
            byte[] bytes = Arrays.copyOfRange(data.getSharedBuffer(), start, data.length());
            DataOutputSerializer again = new DataOutputSerializer(bytes.length + 1);
            restored.serialize(restored.deserialize(new DataInputDeserializer(bytes)), again);
            if (again.length() != bytes.length) { // maps come back in another order
                throw new IllegalStateException(name + ": Flink writes another value after reading");
            }
            boolean record = value instanceof org.apache.avro.generic.IndexedRecord;
            hashes.add(record ? "" + value.hashCode() : "null");
            groups.add(record ? "" + KeyGroupRangeAssignment.assignToKeyGroup(value, 128) : "null");
            plain.add(json(model, value, schema, new HashSet<>()));
        }
        Path folder = Files.createDirectories(root.resolve(name));
        Files.write(folder.resolve("serializer-snapshot"), snapshot);
        Files.write(folder.resolve("test-data"), data.getCopyOfBuffer());
        String described = "{\"case\": " + text(name) + ",\n \"snapshot\": " + text(read.getClass().getName())
                + ",\n \"length\": " + serializer.getLength() + ",\n \"offsets\": " + offsets + ",\n \"hash\": " + hashes
                + ",\n \"keygroup128\": " + groups + ",\n \"values\": [\n  " + String.join(",\n  ", plain) + "\n ]}\n";
        Files.write(folder.resolve("expected.json"), described.getBytes(StandardCharsets.UTF_8));
    }

    /** JSON of one object. A record inside of itself is the bytes that Flink's encoder gives for it. */
    private static String json(GenericData model, Object value, Schema schema, Set<String> open) throws IOException {
        switch (schema.getType()) {
            case RECORD:
                if (!open.add(schema.getFullName())) {
                    return "{\"$hex\": \"" + hex(encoded(model, value, schema)) + "\"}";
                }
                StringJoiner fields = new StringJoiner(", ", "{", "}");
                for (Schema.Field f : schema.getFields()) {
                    Object part = model.getField(value, f.name(), f.pos());
                    fields.add(text(f.name()) + ": " + json(model, part, f.schema(), open));
                }
                open.remove(schema.getFullName());
                return fields.toString();
            case UNION:
                return union(model, value, schema, open);
            case ARRAY:
                StringJoiner items = new StringJoiner(", ", "[", "]");
                for (Object item : elements(value)) {
                    items.add(json(model, item, schema.getElementType(), open));
                }
                return items.toString();
            case MAP:
                StringJoiner pairs = new StringJoiner(", ", "{", "}");
                for (Map.Entry<?, ?> e : ((Map<?, ?>) value).entrySet()) {
                    pairs.add(text(e.getKey().toString()) + ": " + json(model, e.getValue(), schema.getValueType(), open));
                }
                return pairs.toString();
            case NULL:
                return "null";
            default:
                return leaf(value, schema);
        }
    }

    private static String union(GenericData model, Object value, Schema schema, Set<String> open) throws IOException {
        List<Schema> others = schema.getTypes().stream().filter(t -> t.getType() != Schema.Type.NULL).collect(Collectors.toList());
        int branch = model.resolveUnion(schema, value);
        Schema chosen = schema.getTypes().get(branch);
        if (chosen.getType() == Schema.Type.NULL || others.size() == 1) {
            return json(model, value, chosen, open);
        }
        StringJoiner members = new StringJoiner(", ", "{", "}");
        for (int i = 0; i < others.size(); i++) {
            members.add("\"member" + i + "\": " + (others.get(i) == chosen ? json(model, value, chosen, open) : "null"));
        }
        return members.toString();
    }

    private static String leaf(Object value, Schema schema) {
        if (schema.getLogicalType() != null) {
            String told = logical(value, schema);
            if (told != null) {
                return told;
            }
        }
        if (value instanceof CharSequence || value instanceof UUID || value instanceof BigDecimal) {
            return text(value.toString());
        }
        if (value instanceof Float || value instanceof Double) {
            double number = ((Number) value).doubleValue();
            return Double.isFinite(number) ? Double.toString(number) : "{\"$f\": \"" + number + "\"}";
        }
        if (value instanceof Boolean || value instanceof Number) {
            return value.toString();
        }
        if (schema.getType() == Schema.Type.ENUM) {
            return text(value.toString());
        }
        return "{\"$hex\": \"" + hex(bytes(value)) + "\"}";
    }

    /** A logical type, told from the raw number or from the object of a conversion. */
    private static String logical(Object value, Schema schema) {
        String name = schema.getLogicalType().getName();
        switch (name) {
            case "decimal":
                int scale = ((LogicalTypes.Decimal) schema.getLogicalType()).getScale();
                BigInteger unscaled = value instanceof BigDecimal ? ((BigDecimal) value).unscaledValue() : new BigInteger(bytes(value));
                return "{\"$dec\": [\"" + unscaled + "\", " + scale + "]}";
            case "date":
                return date(value instanceof LocalDate ? (LocalDate) value : LocalDate.ofEpochDay(((Number) value).longValue()));
            case "time-millis":
            case "time-micros":
                long unit = name.endsWith("millis") ? 1_000_000 : 1_000;
                return time(value instanceof LocalTime ? (LocalTime) value : LocalTime.ofNanoOfDay(((Number) value).longValue() * unit));
            case "timestamp-millis":
            case "timestamp-micros":
            case "timestamp-nanos":
                Instant at = value instanceof Instant ? (Instant) value : instant(((Number) value).longValue(), name);
                return "{\"$instant\": [" + at.getEpochSecond() + ", " + at.getNano() + "]}";
            case "local-timestamp-millis":
            case "local-timestamp-micros":
            case "local-timestamp-nanos":
                LocalDateTime local = value instanceof LocalDateTime ? (LocalDateTime) value
                        : LocalDateTime.ofInstant(instant(((Number) value).longValue(), name), ZoneOffset.UTC);
                return "{\"$datetime\": [" + date(local.toLocalDate()) + ", " + time(local.toLocalTime()) + "]}";
            default:
                return null;
        }
    }

    private static Instant instant(long value, String name) {
        long second = name.endsWith("millis") ? 1_000 : name.endsWith("micros") ? 1_000_000 : 1_000_000_000;
        return Instant.ofEpochSecond(Math.floorDiv(value, second), Math.floorMod(value, second) * (1_000_000_000 / second));
    }

    private static String date(LocalDate d) {
        return "{\"$date\": [" + d.getYear() + ", " + d.getMonthValue() + ", " + d.getDayOfMonth() + "]}";
    }

    private static String time(LocalTime t) {
        return "{\"$time\": [" + t.getHour() + ", " + t.getMinute() + ", " + t.getSecond() + ", " + t.getNano() + "]}";
    }

    private static byte[] encoded(GenericData model, Object value, Schema schema) throws IOException {
        DataOutputSerializer out = new DataOutputSerializer(64);
        DataOutputEncoder encoder = new DataOutputEncoder();
        encoder.setOut(out);
        @SuppressWarnings("unchecked")
        GenericDatumWriter<Object> writer = (GenericDatumWriter<Object>) model.createDatumWriter(schema);
        writer.write(value, encoder);
        return out.getCopyOfBuffer();
    }

    private static Iterable<?> elements(Object value) {
        if (value instanceof Map) {
            throw new IllegalArgumentException("a map that is written as an array");
        }
        if (value instanceof Collection) {
            return (Collection<?>) value;
        }
        List<Object> found = new ArrayList<>();
        for (int i = 0; i < Array.getLength(value); i++) {
            found.add(Array.get(value, i));
        }
        return found;
    }

    private static byte[] bytes(Object value) {
        if (value instanceof GenericFixed) {
            return ((GenericFixed) value).bytes();
        }
        if (value instanceof ByteBuffer) {
            ByteBuffer b = ((ByteBuffer) value).duplicate();
            byte[] found = new byte[b.remaining()];
            b.get(found);
            return found;
        }
        return (byte[]) value;
    }

    private static String hex(byte[] bytes) {
        StringBuilder found = new StringBuilder();
        for (byte b : bytes) {
            found.append(String.format("%02x", b));
        }
        return found.toString();
    }

    private static String text(String value) {
        StringBuilder found = new StringBuilder("\"");
        for (char c : value.toCharArray()) {
            found.append(c == '"' || c == '\\' || c < 0x20 || c > 0x7e ? String.format("\\u%04x", (int) c) : "" + c);
        }
        return found.append('"').toString();
    }
}
