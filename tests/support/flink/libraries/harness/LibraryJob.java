package harness;

import com.google.protobuf.ListValue;
import com.google.protobuf.Message;
import com.google.protobuf.Struct;
import com.google.protobuf.Timestamp;
import com.google.protobuf.Value;
import com.google.protobuf.util.JsonFormat;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.java.typeutils.GenericTypeInfo;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.statefun.flink.common.protobuf.ProtobufTypeInformation;
import org.apache.flink.statefun.flink.core.message.MessageFactory;
import org.apache.flink.statefun.flink.core.message.MessageFactoryKey;
import org.apache.flink.statefun.flink.core.message.MessageFactoryType;
import org.apache.flink.statefun.flink.core.message.MessageTypeInformation;
import org.apache.flink.statefun.flink.core.types.remote.RemoteValueTypeInfo;
import org.apache.flink.statefun.sdk.Address;
import org.apache.flink.statefun.sdk.FunctionType;
import org.apache.flink.statefun.sdk.TypeName;
import org.apache.hudi.common.model.HoodieRecordGlobalLocation;

/** Keeps state with the types of Stateful Functions and Hudi, which a restored job has to find again. */
public final class LibraryJob {
    private static final MessageFactoryKey MESSAGES =
            MessageFactoryKey.forType(MessageFactoryType.WITH_PROTOBUF_PAYLOADS, null);

    private LibraryJob() {}

    static Struct struct(long n) {
        Struct.Builder inner = Struct.newBuilder().putFields("größe", Value.newBuilder().setNumberValue(n * 1.5).build());
        ListValue.Builder list = ListValue.newBuilder();
        for (int i = 0; i < n % 3; i++) {
            list.addValues(Value.newBuilder().setStringValue("v" + i));
        }
        return Struct.newBuilder()
                .putFields("inner", Value.newBuilder().setStructValue(inner).build())
                .putFields("list", Value.newBuilder().setListValue(list).build())
                .putFields("even", Value.newBuilder().setBoolValue(n % 2 == 0).build())
                .build();
    }

    static HoodieRecordGlobalLocation location(long n) {
        return new HoodieRecordGlobalLocation("day=" + n % 3, "2026010112000" + n, "file-" + n + "-0", n % 2 == 0 ? -1 : n);
    }

    static String text(HoodieRecordGlobalLocation found) {
        return found.getPartitionPath() + " " + found.getInstantTime() + " " + found.getFileId() + " " + found.getPosition();
    }

    static final class Keeper extends KeyedNumbers.Keeper {
        private transient ValueState<Struct> struct;
        private transient ListState<Timestamp> times;
        private transient ValueState<byte[]> remote;
        private transient ListState<org.apache.flink.statefun.flink.core.message.Message> delayed;
        private transient ValueState<HoodieRecordGlobalLocation> index;
        private transient ValueState<HoodieRecordGlobalLocation> generic;

        Keeper(String run, boolean write) {
            super(run, write);
        }

        public void open(Configuration parameters) {
            struct = value("struct", new ProtobufTypeInformation<>(Struct.class));
            times = getRuntimeContext().getListState(
                    new ListStateDescriptor<>("times", new ProtobufTypeInformation<>(Timestamp.class)));
            remote = value("remote", new RemoteValueTypeInfo(TypeName.parseFrom("com.acme/cart")));
            delayed = getRuntimeContext().getListState(
                    new ListStateDescriptor<>("delayed-message-buffer", new MessageTypeInformation(MESSAGES)));
            index = value("indexState", TypeInformation.of(HoodieRecordGlobalLocation.class));
            generic = value("genericIndex", new GenericTypeInfo<>(HoodieRecordGlobalLocation.class));
        }

        @Override
        void write(String key, long n) throws Exception {
            struct.update(struct(n));
            for (int i = 0; i <= n % 3; i++) {
                times.add(Timestamp.newBuilder().setSeconds(1_700_000_000L + n).setNanos(i * 1000).build());
            }
            remote.update(("cart " + n).getBytes(StandardCharsets.UTF_8));
            Address cart = new Address(new FunctionType("com.acme", "cart"), key);
            Address user = new Address(new FunctionType("com.acme", "user"), "user-" + n);
            delayed.add(MessageFactory.forKey(MESSAGES).from(user, cart, struct(n), "token-" + n));
            index.update(location(n));
            generic.update(location(n + 100));
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
            values.put("remote", new String(remote.value(), StandardCharsets.UTF_8));
            List<Object> messages = new ArrayList<>();
            for (org.apache.flink.statefun.flink.core.message.Message message : delayed.get()) {
                messages.add(message.source() + " " + message.target() + " " + message.cancellationToken().orElse(null) + " "
                        + json((Message) message.payload(MessageFactory.forKey(MESSAGES), getClass().getClassLoader())));
            }
            values.put("delayed-message-buffer", messages);
            values.put("indexState", text(index.value()));
            values.put("genericIndex", text(generic.value()));
            return values;
        }

        private static Object json(Message message) throws Exception {
            return JsonFormat.printer().omittingInsignificantWhitespace().print(message);
        }
    }

    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        return KeyedNumbers.run(cluster, request, 12, Keeper::new);
    }
}
