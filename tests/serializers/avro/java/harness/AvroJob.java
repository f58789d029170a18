package harness;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.functions.FilterFunction;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.StateTtlConfig;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.formats.avro.typeutils.GenericRecordAvroTypeInfo;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/**
 * Keyed state of Avro types in a savepoint: values with and without a time to live, lists, maps, and keys.
 *
 * <p>Element {@code n} of 0 to 39 is written under key {@code n}; what it holds is a function of {@code n} (see {@link #order}). With a
 * {@code snapshot} in the request the job goes on from it and fails unless each key has what the first run wrote.
 */
final class AvroJob {
    private static final int COUNT = 40;
    private static final String ORDER = "{'type':'record','name':'Order','namespace':'statetool.job','fields':["
            + "{'name':'id','type':'long'},{'name':'customer','type':'string'},{'name':'note','type':['null','string']},"
            + "{'name':'lines','type':{'type':'array','items':{'type':'record','name':'Line','fields':["
            + "{'name':'sku','type':'string'},{'name':'count','type':'int'}]}}},"
            + "{'name':'choice','type':['int','string','Line']},{'name':'tags','type':{'type':'map','values':'double'}}]}";
    private static final String KEY = "{'type':'record','name':'Key','namespace':'statetool.job','fields':["
            + "{'name':'number','type':'int'},{'name':'shop','type':'string'},{'name':'kind','type':{'type':'enum','name':'Kind','symbols':['A','B']}},"
            + "{'name':'extra','type':['null','long']},{'name':'path','type':{'type':'array','items':'string'}}]}";
    private static final AtomicInteger SEEN = new AtomicInteger();

    private static volatile boolean restored;

    private AvroJob() {}

    private static Schema schema(String text) {
        return new Schema.Parser().parse(text.replace('\'', '"'));
    }

    private static GenericRecord line(int n, Schema line) {
        GenericRecord found = new GenericData.Record(line);
        found.put("sku", "sku-" + n);
        found.put("count", -n);
        return found;
    }

    static GenericRecord order(int n) {
        Schema order = schema(ORDER);
        Schema line = order.getField("lines").schema().getElementType();
        List<GenericRecord> lines = new ArrayList<>();
        for (int i = 0; i < n % 4; i++) {
            lines.add(line(n + i, line));
        }
        GenericRecord found = new GenericData.Record(order);
        found.put("id", 1_000_000_007L * n);
        found.put("customer", "Zo\u00eb " + n);
        found.put("note", n % 3 == 0 ? null : "note " + n);
        found.put("lines", lines);
        found.put("choice", n % 3 == 0 ? (Object) n : n % 3 == 1 ? "text " + n : line(n, line));
        found.put("tags", n % 5 == 0 ? Collections.emptyMap() : Collections.singletonMap("tag " + n, n / 4.0));
        return found;
    }

    static GenericRecord key(int n) {
        Schema key = schema(KEY);
        GenericRecord found = new GenericData.Record(key);
        found.put("number", n);
        found.put("shop", "shop \u00e9 " + n % 7);
        found.put("kind", new GenericData.EnumSymbol(key.getField("kind").schema(), n % 2 == 0 ? "A" : "B"));
        found.put("extra", n % 3 == 0 ? null : (Object) (10_000_000_000L * n));
        found.put("path", n % 4 == 0 ? Collections.emptyList() : Arrays.asList("p" + n, ""));
        return found;
    }

    private static TypeInformation<GenericRecord> orders() {
        return new GenericRecordAvroTypeInfo(schema(ORDER));
    }

    /** The first elements only; the source goes on, so that a savepoint can be taken. */
    static final class First implements FilterFunction<Long> {
        @Override
        public boolean filter(Long n) throws Exception {
            if (n >= COUNT) {
                Thread.sleep(20);
            }
            return n < COUNT;
        }
    }

    static final class Number implements KeySelector<Long, Long> {
        @Override
        public Long getKey(Long n) {
            return n;
        }
    }

    static final class Record implements KeySelector<Long, GenericRecord> {
        @Override
        public GenericRecord getKey(Long n) {
            return key(n.intValue());
        }
    }

    static final class ByNumber extends KeyedProcessFunction<Long, Long, Long> {
        @Override
        public void processElement(Long n, Context context, Collector<Long> out) throws Exception {
            int i = n.intValue();
            ValueStateDescriptor<GenericRecord> value = new ValueStateDescriptor<>("value", orders());
            same(order(i), getRuntimeContext().getState(value).value());
            getRuntimeContext().getState(value).update(order(i));
            ValueStateDescriptor<GenericRecord> timed = new ValueStateDescriptor<>("timed", orders());
            Object days = Class.forName("java.time.Duration").getMethod("ofDays", long.class).invoke(null, 10_000L);
            timed.enableTimeToLive(ttl(days));
            same(order(i + 1), getRuntimeContext().getState(timed).value());
            getRuntimeContext().getState(timed).update(order(i + 1));
            ListState<GenericRecord> list = getRuntimeContext().getListState(new ListStateDescriptor<>("list", orders()));
            List<GenericRecord> before = new ArrayList<>();
            list.get().forEach(before::add);
            same(Arrays.asList(order(i), order(i + 2)), before);
            list.update(Arrays.asList(order(i), order(i + 2)));
            MapState<String, GenericRecord> map = getRuntimeContext().getMapState(new MapStateDescriptor<>("map", Types.STRING, orders()));
            same(order(i), map.get("first"));
            same(order(i + 3), map.get("second"));
            map.put("first", order(i));
            map.put("second", order(i + 3));
            SEEN.incrementAndGet();
        }

        /** {@code newBuilder} takes another class of time before 2.0. */
        private static StateTtlConfig ttl(Object days) throws Exception {
            try {
                return ((StateTtlConfig.Builder) StateTtlConfig.class.getMethod("newBuilder", java.time.Duration.class).invoke(null, days)).build();
            } catch (NoSuchMethodException e) {
                Class<?> time = Class.forName("org.apache.flink.api.common.time.Time");
                Object old = time.getMethod("days", long.class).invoke(null, 10_000L);
                return ((StateTtlConfig.Builder) StateTtlConfig.class.getMethod("newBuilder", time).invoke(null, old)).build();
            }
        }
    }

    static final class ByRecord extends KeyedProcessFunction<GenericRecord, Long, Long> {
        @Override
        public void processElement(Long n, Context context, Collector<Long> out) throws Exception {
            ValueState<Long> value = getRuntimeContext().getState(new ValueStateDescriptor<>("number", Types.LONG));
            same(n, value.value());
            value.update(n);
            context.timerService().registerEventTimeTimer(1_000_000_000_000L + n);
            SEEN.incrementAndGet();
        }
    }

    static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(2);
        env.setMaxParallelism(request.path("max").asInt(64));
        SEEN.set(0);
        restored = request.has("snapshot");
        DataStream<Long> numbers = env.fromSequence(0, Long.MAX_VALUE / 2).setParallelism(1).uid(restored ? "numbers-again" : "numbers").filter(new First())
                .setParallelism(1).uid("first");
        numbers.keyBy(new Number(), Types.LONG).process(new ByNumber()).uid("by-number").map(new Nothing()).uid("nothing-1");
        numbers.keyBy(new Record(), new GenericRecordAvroTypeInfo(schema(KEY))).process(new ByRecord()).uid("by-record").map(new Nothing())
                .uid("nothing-2");
        JobID job = cluster.submit(env, restored ? request.get("snapshot").asText() : null, true);
        cluster.await(job, "all elements", () -> SEEN.get() == 2 * COUNT);
        String path = cluster.savepoint(job, request.get("folder").asText(), request.path("format").asText("CANONICAL"));
        cluster.cancel(job);
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("path", path);
        found.put("orders", texts(false));
        found.put("keys", texts(true));
        return found;
    }

    private static void same(Object expected, Object found) {
        if (restored && !expected.toString().equals(String.valueOf(found))) {
            throw new IllegalStateException("found " + found + ", expected " + expected);
        }
    }

    /** What the records hold, as Avro's JSON. */
    private static List<String> texts(boolean keys) {
        List<String> found = new ArrayList<>();
        for (int n = 0; n < COUNT + 3; n++) {
            found.add((keys ? key(n) : order(n)).toString());
        }
        return found;
    }

    static final class Nothing implements MapFunction<Long, Long> {
        @Override
        public Long map(Long n) {
            return n;
        }
    }
}
