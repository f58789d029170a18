import java.util.ArrayList;
import java.util.List;

import org.apache.flink.api.common.ExecutionConfig;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.api.common.typeutils.base.StringSerializer;
import org.apache.flink.api.java.typeutils.GenericTypeInfo;
import org.apache.flink.api.java.typeutils.TypeExtractor;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;

/** Prints the snapshots of serializers that a job has for its classes, and bytes of keys and values: a line per state. */
public final class WriteStates {
    @SuppressWarnings({"unchecked", "rawtypes"})
    public static void main(String[] args) throws Exception {
        for (String name : args) {
            String[] words = name.split(":");
            Class<?> type = Class.forName(words[1]);
            TypeSerializer serializer = null;
            if (words[0].equals("own")) {
                serializer = (TypeSerializer) Class.forName(words[1] + "Serializer").getConstructor().newInstance();
            } else {
                serializer = create(words[0].equals("kryo") ? new GenericTypeInfo(type) : TypeExtractor.createTypeInfo(type));
            }
            TypeSerializer key = words[0].equals("key") ? serializer : StringSerializer.INSTANCE;
            TypeSerializer value = words[0].equals("key") ? StringSerializer.INSTANCE : serializer;
            List<String> line = new ArrayList<>(List.of(name, snapshot(key), snapshot(value)));
            for (Object element : (Object[]) Class.forName("ran.Values").getMethod("of", String.class).invoke(null, words[1])) {
                Object one = words[0].equals("key") ? element : "key";
                line.add(String.valueOf(KeyGroupRangeAssignment.assignToKeyGroup(one, 128)));
                line.add(bytes(key, one));
                line.add(bytes(value, words[0].equals("key") ? "value" : element));
            }
            System.out.println(String.join(" ", line));
        }
    }

    private static TypeSerializer<?> create(TypeInformation<?> type) throws Exception {
        try {
            Class<?> config = Class.forName("org.apache.flink.api.common.serialization.SerializerConfig");
            Object given = Class.forName("org.apache.flink.api.common.serialization.SerializerConfigImpl").getConstructor().newInstance();
            return (TypeSerializer<?>) TypeInformation.class.getMethod("createSerializer", config).invoke(type, given);
        } catch (ClassNotFoundException e) {
            return (TypeSerializer<?>) TypeInformation.class.getMethod("createSerializer", ExecutionConfig.class).invoke(type, new ExecutionConfig());
        }
    }

    private static String snapshot(TypeSerializer<?> serializer) throws Exception {
        DataOutputSerializer out = new DataOutputSerializer(64);
        TypeSerializerSnapshot.writeVersionedSnapshot(out, serializer.snapshotConfiguration());
        return hex(out.getCopyOfBuffer());
    }

    private static String bytes(TypeSerializer<Object> serializer, Object value) throws Exception {
        DataOutputSerializer out = new DataOutputSerializer(64);
        serializer.serialize(value, out);
        return hex(out.getCopyOfBuffer());
    }

    private static String hex(byte[] bytes) {
        StringBuilder out = new StringBuilder("x");
        for (byte b : bytes) {
            out.append(String.format("%02x", b));
        }
        return out.toString();
    }
}
