package harness;

import java.util.HashMap;
import java.util.Map;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.api.java.typeutils.GenericTypeInfo;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;

/** Objects as Flink's {@code KryoSerializer} writes them, with the snapshot of the serializer, as hexadecimal text. */
final class JarredValues {
    private JarredValues() {}

    @SuppressWarnings("unchecked")
    static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        Class<?> source = Class.forName(request.get("source").asText());
        Map<String, Object> objects = (Map<String, Object>) source.getMethod(request.path("method").asText("all")).invoke(null);
        Map<String, Object> out = new HashMap<>();
        for (Map.Entry<String, Object> object : objects.entrySet()) {
            SerializerConfigImpl config = new SerializerConfigImpl();
            for (JsonNode registered : request.path("defaults")) {
                config.addDefaultKryoSerializer(
                        Class.forName(registered.get(0).asText()), (Class) Class.forName(registered.get(1).asText()));
            }
            TypeSerializer<Object> serializer =
                    (TypeSerializer<Object>) new GenericTypeInfo<>(object.getValue().getClass()).createSerializer(config);
            DataOutputSerializer value = new DataOutputSerializer(64);
            serializer.serialize(object.getValue(), value);
            DataOutputSerializer snapshot = new DataOutputSerializer(64);
            TypeSerializerSnapshot.writeVersionedSnapshot(snapshot, serializer.snapshotConfiguration());
            Map<String, Object> row = new HashMap<>();
            row.put("class", object.getValue().getClass().getName());
            row.put("value", Values.hex(value.getCopyOfBuffer()));
            row.put("snapshot", Values.hex(snapshot.getCopyOfBuffer()));
            out.put(object.getKey(), row);
        }
        return out;
    }
}
