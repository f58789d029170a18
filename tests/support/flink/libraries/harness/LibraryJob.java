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
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.functions.KeySelector;
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
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;
import org.apache.hudi.common.model.HoodieRecordGlobalLocation;

/** Keeps state with the types of Stateful Functions and Hudi, which a restored job has to find again. */
public final class LibraryJob {
    /** By run: the values of each key by state. */
    static final Map<String, Map<String, Object>> SEEN = new ConcurrentHashMap<>();

    private static final MessageFactoryKey MESSAGES =
            MessageFactoryKey.forType(MessageFactoryType.WITH_PROTOBUF_PAYLOADS, null);

    private LibraryJob() {}

    static final class Modulo implements MapFunction<Long, Long> {
        private final long keys;

        Modulo(long keys) {
            this.keys = keys;
        }

        @Override
        public Long map(Long n) throws Exception {
            Thread.sleep(2);
            return n % keys;
        }
    }

    static final class ByName implements KeySelector<Long, String> {
        @Override
        public String getKey(Long n) {
            return "key-" + n;
        }
    }

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

    /** Writes the states of a key that has none, and tells the values of one that has. */
    static final class Keeper extends KeyedProcessFunction<String, Long, Long> {
        private final String run;
        private final boolean write;
        private transient ValueState<Struct> struct;
        private transient ListState<Timestamp> times;
        private transient ValueState<byte[]> remote;
        private transient ListState<org.apache.flink.statefun.flink.core.message.Message> delayed;
        private transient ValueState<HoodieRecordGlobalLocation> index;
        private transient ValueState<HoodieRecordGlobalLocation> generic;

        Keeper(String run, boolean write) {
            this.run = run;
            this.write = write;
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

        private <T> ValueState<T> value(String name, TypeInformation<T> type) {
            return getRuntimeContext().getState(new ValueStateDescriptor<>(name, type));
        }

        @Override
        public void processElement(Long n, Context context, Collector<Long> out) throws Exception {
            Map<String, Object> seen = SEEN.get(run);
            if (seen == null || seen.containsKey(context.getCurrentKey())) {
                return;
            }
            if (write) {
                struct.update(struct(n));
                for (int i = 0; i <= n % 3; i++) {
                    times.add(Timestamp.newBuilder().setSeconds(1_700_000_000L + n).setNanos(i * 1000).build());
                }
                remote.update(("cart " + n).getBytes(StandardCharsets.UTF_8));
                Address cart = new Address(new FunctionType("com.acme", "cart"), context.getCurrentKey());
                Address user = new Address(new FunctionType("com.acme", "user"), "user-" + n);
                delayed.add(MessageFactory.forKey(MESSAGES).from(user, cart, struct(n), "token-" + n));
                index.update(location(n));
                generic.update(location(n + 100));
            }
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
            seen.put(context.getCurrentKey(), values);
        }

        private static Object json(Message message) throws Exception {
            return JsonFormat.printer().omittingInsignificantWhitespace().print(message);
        }
    }

    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        String run = UUID.randomUUID().toString();
        int keys = request.path("keys").asInt(12);
        Map<String, Object> seen = new ConcurrentHashMap<>();
        SEEN.put(run, seen);
        String snapshot = request.path("snapshot").asText(null);
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(request.path("parallelism").asInt(2));
        env.setMaxParallelism(request.path("max_parallelism").asInt(128));
        env.fromSequence(0, Long.MAX_VALUE / 2).setParallelism(1).uid("numbers-" + run)
                .map(new Modulo(keys)).returns(Types.LONG).setParallelism(1).uid("modulo-" + run)
                .keyBy(new ByName(), Types.STRING)
                .process(new Keeper(run, snapshot == null)).returns(Types.LONG).uid(request.path("uid").asText("keeper"));
        org.apache.flink.api.common.JobID job = cluster.submit(env, snapshot, true);
        try {
            cluster.await(job, "all keys to be seen", () -> seen.size() == keys);
            Map<String, Object> out = new LinkedHashMap<>();
            if (request.hasNonNull("savepoint")) {
                String format = request.path("format").asText("CANONICAL");
                out.put("savepoint", cluster.savepoint(job, request.get("savepoint").asText(), format));
            }
            out.put("values", new TreeMap<>(seen));
            return out;
        } finally {
            cluster.cancel(job);
            SEEN.remove(run);
        }
    }
}
