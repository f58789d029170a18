package harness;

import com.google.protobuf.Duration;
import com.google.protobuf.Message;
import com.google.protobuf.Parser;
import com.google.protobuf.Struct;
import com.google.protobuf.Timestamp;
import com.google.protobuf.Value;
import com.google.protobuf.util.JsonFormat;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeutils.SimpleTypeSerializerSnapshot;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.TypeSerializerSchemaCompatibility;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.api.java.typeutils.runtime.DataInputViewStream;
import org.apache.flink.api.java.typeutils.runtime.DataOutputViewStream;
import org.apache.flink.core.memory.DataInputView;
import org.apache.flink.core.memory.DataOutputView;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;

/** Keeps Protobuf messages that serializers of the job write: after a varint with their length, or after an int. */
public final class ProtobufJob {
    private ProtobufJob() {}

    /** Common parts of the two serializers. */
    abstract static class MessageSerializer<T extends Message> extends TypeSerializer<T> {
        @Override
        public boolean isImmutableType() {
            return true;
        }

        @Override
        public TypeSerializer<T> duplicate() {
            return this;
        }

        @Override
        public T copy(T from) {
            return from;
        }

        @Override
        public T copy(T from, T reuse) {
            return from;
        }

        @Override
        public int getLength() {
            return -1;
        }

        @Override
        public T deserialize(T reuse, DataInputView source) throws IOException {
            return deserialize(source);
        }

        @Override
        public void copy(DataInputView source, DataOutputView target) throws IOException {
            serialize(deserialize(source), target);
        }

        @Override
        public boolean equals(Object other) {
            return other != null && other.getClass() == getClass();
        }

        @Override
        public int hashCode() {
            return getClass().hashCode();
        }
    }

    /** A serializer of one message with an empty snapshot. */
    public static final class StructSerializer extends MessageSerializer<Struct> {
        @Override
        public Struct createInstance() {
            return Struct.getDefaultInstance();
        }

        @Override
        public void serialize(Struct record, DataOutputView target) throws IOException {
            record.writeDelimitedTo(new DataOutputViewStream(target));
        }

        @Override
        public Struct deserialize(DataInputView source) throws IOException {
            return Struct.parseDelimitedFrom(new DataInputViewStream(source));
        }

        @Override
        public TypeSerializerSnapshot<Struct> snapshotConfiguration() {
            return new StructSnapshot();
        }
    }

    public static final class StructSnapshot extends SimpleTypeSerializerSnapshot<Struct> {
        public StructSnapshot() {
            super(StructSerializer::new);
        }
    }

    /** A serializer of any message whose snapshot has the name of its class. */
    public static final class FramedSerializer<T extends Message> extends MessageSerializer<T> {
        private final Class<T> type;

        FramedSerializer(Class<T> type) {
            this.type = type;
        }

        @SuppressWarnings("unchecked")
        private T defaultInstance() {
            try {
                return (T) type.getMethod("getDefaultInstance").invoke(null);
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException(e);
            }
        }

        @Override
        public T createInstance() {
            return defaultInstance();
        }

        @Override
        public void serialize(T record, DataOutputView target) throws IOException {
            byte[] bytes = record.toByteArray();
            target.writeInt(bytes.length);
            target.write(bytes);
        }

        @SuppressWarnings("unchecked")
        @Override
        public T deserialize(DataInputView source) throws IOException {
            byte[] bytes = new byte[source.readInt()];
            source.readFully(bytes);
            return ((Parser<T>) defaultInstance().getParserForType()).parseFrom(bytes);
        }

        @Override
        public TypeSerializerSnapshot<T> snapshotConfiguration() {
            return new FramedSnapshot<>(type);
        }
    }

    public static final class FramedSnapshot<T extends Message> implements TypeSerializerSnapshot<T> {
        private Class<T> type;

        public FramedSnapshot() {}

        FramedSnapshot(Class<T> type) {
            this.type = type;
        }

        @Override
        public int getCurrentVersion() {
            return 1;
        }

        @Override
        public void writeSnapshot(DataOutputView out) throws IOException {
            out.writeUTF(type.getName());
        }

        @SuppressWarnings("unchecked")
        @Override
        public void readSnapshot(int version, DataInputView in, ClassLoader loader) throws IOException {
            String name = in.readUTF();
            try {
                type = (Class<T>) Class.forName(name, false, loader);
            } catch (ClassNotFoundException e) {
                throw new IOException(e);
            }
        }

        @Override
        public TypeSerializer<T> restoreSerializer() {
            return new FramedSerializer<>(type);
        }

        /** Of Flink 1.x. */
        public TypeSerializerSchemaCompatibility<T> resolveSchemaCompatibility(TypeSerializer<T> serializer) {
            return resolveSchemaCompatibility(serializer.snapshotConfiguration());
        }

        /** Of Flink 2.x. */
        public TypeSerializerSchemaCompatibility<T> resolveSchemaCompatibility(TypeSerializerSnapshot<T> other) {
            boolean same = other instanceof FramedSnapshot;
            return same
                    ? TypeSerializerSchemaCompatibility.compatibleAsIs()
                    : TypeSerializerSchemaCompatibility.incompatible();
        }
    }

    static Struct struct(long n) {
        return Struct.newBuilder()
                .putFields("größe", Value.newBuilder().setNumberValue(n / 2.0).build())
                .putFields("name", Value.newBuilder().setStringValue("x".repeat((int) n * 40)).build())
                .build();
    }

    static final class Keeper extends KeyedNumbers.Keeper {
        private transient ValueState<Struct> struct;
        private transient ListState<Timestamp> times;
        private transient MapState<String, Duration> lasts;

        Keeper(String run, boolean write) {
            super(run, write);
        }

        @Override
        public void open(OpenContext context) {
            struct = getRuntimeContext().getState(new ValueStateDescriptor<>("struct", new StructSerializer()));
            times = getRuntimeContext().getListState(
                    new ListStateDescriptor<>("times", new FramedSerializer<>(Timestamp.class)));
            lasts = getRuntimeContext().getMapState(new MapStateDescriptor<>("lasts",
                    org.apache.flink.api.common.typeutils.base.StringSerializer.INSTANCE,
                    new FramedSerializer<>(Duration.class)));
        }

        @Override
        void write(String key, long n) throws Exception {
            struct.update(n == 0 ? Struct.getDefaultInstance() : struct(n));
            for (int i = 0; i <= n % 3; i++) {
                times.add(Timestamp.newBuilder().setSeconds(1_700_000_000L + n).setNanos(i * 1000).build());
            }
            lasts.put("short", Duration.getDefaultInstance());
            lasts.put("long", Duration.newBuilder().setSeconds(n).setNanos(1).build());
        }

        @Override
        Map<String, Object> read() throws Exception {
            Map<String, Object> values = new LinkedHashMap<>();
            values.put("struct", json(struct.value()));
            List<Object> found = new ArrayList<>();
            for (Timestamp time : times.get()) {
                found.add(json(time));
            }
            values.put("times", found);
            Map<String, Object> entries = new TreeMap<>();
            for (Map.Entry<String, Duration> entry : lasts.entries()) {
                entries.put(entry.getKey(), json(entry.getValue()));
            }
            values.put("lasts", entries);
            return values;
        }

        private static Object json(Message message) throws Exception {
            return JsonFormat.printer().omittingInsignificantWhitespace().print(message);
        }
    }

    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        return KeyedNumbers.run(cluster, request, 10, Keeper::new);
    }
}
