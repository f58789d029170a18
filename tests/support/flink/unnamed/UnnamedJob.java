package harness;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.functions.RichFlatMapFunction;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.datastream.BroadcastStream;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.co.BroadcastProcessFunction;
import org.apache.flink.streaming.api.functions.co.CoProcessFunction;
import org.apache.flink.streaming.api.graph.StreamGraph;
import org.apache.flink.streaming.api.graph.StreamGraphHasherV2;
import org.apache.flink.streaming.api.graph.StreamNode;
import org.apache.flink.streaming.api.windowing.assigners.TumblingProcessingTimeWindows;
import org.apache.flink.table.api.Table;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.Collector;
import org.apache.flink.util.StringUtils;

/**
 * Jobs whose operators have no uids, or names that Flink gives. The answer says which operator of the program has which id, and what the REST API
 * says of the job graph.
 */
public final class UnnamedJob {
    private UnnamedJob() {}

    /** A program: its operators by what they are in it. */
    private static final class Program {
        final StreamExecutionEnvironment env;
        final String run;
        /** Ids of the nodes of the stream graph, by tag. */
        final Map<String, Integer> tags = new LinkedHashMap<>();

        Program(StreamExecutionEnvironment env, String run) {
            this.env = env;
            this.run = run;
        }

        <T> DataStream<T> tag(String tag, DataStream<T> stream) {
            tags.put(tag, stream.getTransformation().getId());
            return stream;
        }

        DataStream<Long> numbers(String tag) {
            return tag(tag, env.fromSequence(0, Long.MAX_VALUE / 2).setParallelism(1)).map(new Slow()).setParallelism(1);
        }

        KeyedStream<Long, Integer> keyed(DataStream<Long> numbers) {
            return numbers.keyBy(n -> (int) (n % 5));
        }

        void end(DataStream<Long> stream) throws Exception {
            Cluster.discard(stream.map(new Count<Long>(run)));
        }
    }

    static final class Slow implements MapFunction<Long, Long> {
        @Override
        public Long map(Long n) throws Exception {
            Thread.sleep(2);
            return n;
        }
    }

    static final class Count<T> implements MapFunction<T, Long> {
        private final String run;

        Count(String run) {
            this.run = run;
        }

        @Override
        public Long map(T row) {
            Board.of(run).records.add(0L);
            return 0L;
        }
    }

    /** Sums in a value. */
    static final class Sum extends RichFlatMapFunction<Long, Long> {
        @Override
        public void flatMap(Long n, Collector<Long> out) throws Exception {
            ValueState<Long> sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.LONG));
            sum.update((sum.value() == null ? 0 : sum.value()) + n);
            out.collect(n);
        }
    }

    static final class Seen extends KeyedProcessFunction<Integer, Long, Long> {
        @Override
        public void processElement(Long n, Context context, Collector<Long> out) throws Exception {
            MapState<String, Long> seen = getRuntimeContext().getMapState(new MapStateDescriptor<>("seen", Types.STRING, Types.LONG));
            seen.put(String.valueOf(n % 3), n);
            out.collect(n);
        }
    }

    static final class Recent extends KeyedProcessFunction<Integer, Long, Long> {
        @Override
        public void processElement(Long n, Context context, Collector<Long> out) throws Exception {
            ListState<Long> recent = getRuntimeContext().getListState(new ListStateDescriptor<>("recent", Types.LONG));
            ValueState<Integer> count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.INT));
            recent.update(List.of(n));
            count.update(count.value() == null ? 1 : count.value() + 1);
            out.collect(n);
        }
    }

    static final class Alarm extends KeyedProcessFunction<Integer, Long, Long> {
        @Override
        public void processElement(Long n, Context context, Collector<Long> out) throws Exception {
            ValueState<String> last = getRuntimeContext().getState(new ValueStateDescriptor<>("last", Types.STRING));
            last.update(String.valueOf(n));
            context.timerService().registerProcessingTimeTimer(4_000_000_000_000L + n % 3);
            out.collect(n);
        }
    }

    static final class Both extends CoProcessFunction<Long, Long, Long> {
        @Override
        public void processElement1(Long n, Context context, Collector<Long> out) throws Exception {
            getRuntimeContext().getState(new ValueStateDescriptor<>("left", Types.LONG)).update(n);
            out.collect(n);
        }

        @Override
        public void processElement2(Long n, Context context, Collector<Long> out) throws Exception {
            getRuntimeContext().getState(new ValueStateDescriptor<>("right", Types.STRING)).update(String.valueOf(n));
            out.collect(n);
        }
    }

    private static final MapStateDescriptor<Long, String> RULES = new MapStateDescriptor<>("rules", Types.LONG, Types.STRING);

    static final class Ruled extends BroadcastProcessFunction<Long, Long, Long> {
        @Override
        public void processElement(Long n, ReadOnlyContext context, Collector<Long> out) {
            out.collect(n);
        }

        @Override
        public void processBroadcastElement(Long n, Context context, Collector<Long> out) throws Exception {
            context.getBroadcastState(RULES).put(n % 3, String.valueOf(n));
        }
    }

    static final class Buffer implements MapFunction<Long, Long>, CheckpointedFunction {
        private transient ListState<Long> buffer;

        @Override
        public Long map(Long n) {
            return n;
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) throws Exception {
            buffer.update(List.of(1L, 2L));
        }

        @Override
        public void initializeState(FunctionInitializationContext context) throws Exception {
            buffer = context.getOperatorStateStore().getListState(new ListStateDescriptor<>("buffer", Types.LONG));
        }
    }

    static final class Total implements AggregateFunction<Long, Long, Long> {
        @Override
        public Long createAccumulator() {
            return 0L;
        }

        @Override
        public Long add(Long n, Long sum) {
            return sum + n;
        }

        @Override
        public Long getResult(Long sum) {
            return sum;
        }

        @Override
        public Long merge(Long a, Long b) {
            return a + b;
        }
    }

    private static java.time.Duration seconds(int n) {
        return java.time.Duration.ofSeconds(n);
    }

    /** Flink 1 has another class of durations in windows. */
    private static Object windows(String type, int seconds) throws Exception {
        Class<?> assigner = Class.forName("org.apache.flink.streaming.api.windowing.assigners." + type);
        try {
            return assigner.getMethod("of", java.time.Duration.class).invoke(null, seconds(seconds));
        } catch (NoSuchMethodException e) {
            Class<?> time = Class.forName("org.apache.flink.streaming.api.windowing.time.Time");
            return assigner.getMethod("of", time).invoke(null, time.getMethod("seconds", long.class).invoke(null, (long) seconds));
        }
    }

    @SuppressWarnings("unchecked")
    private static void build(String job, Program p) throws Exception {
        DataStream<Long> numbers = p.numbers("numbers");
        switch (job) {
            case "sums":
                p.end(p.tag("sums", p.keyed(numbers).flatMap(new Sum())));
                return;
            case "two-states":
                DataStream<Long> sums = p.tag("sums", p.keyed(numbers).flatMap(new Sum()));
                p.end(p.tag("seen", p.keyed(sums).process(new Seen())));
                return;
            case "three-states":
                DataStream<Long> first = p.tag("recent", p.keyed(numbers).process(new Recent())).map(n -> n + 1).returns(Types.LONG);
                DataStream<Long> second = p.tag("sums", p.keyed(first).flatMap(new Sum())).filter(n -> n >= 0);
                p.end(p.tag("alarm", p.keyed(second).process(new Alarm())));
                return;
            case "timers":
                p.end(p.tag("alarm", p.keyed(numbers).process(new Alarm())));
                return;
            case "windows":
                p.end(p.tag("window", p.keyed(numbers)
                        .window((TumblingProcessingTimeWindows) windows("TumblingProcessingTimeWindows", 3600)).aggregate(new Total()))
                        .union(numbers));
                return;
            case "connected":
                p.end(p.tag("both", p.keyed(numbers).connect(p.keyed(numbers.map(n -> -n).returns(Types.LONG))).process(new Both())));
                return;
            case "broadcast":
                BroadcastStream<Long> rules = numbers.filter(n -> n % 7 == 0).broadcast(RULES);
                p.end(p.tag("ruled", numbers.connect(rules).process(new Ruled())));
                return;
            case "buffered":
                p.end(p.tag("sums", p.keyed(p.tag("buffer", numbers.rebalance().map(new Buffer()))).flatMap(new Sum())));
                return;
            case "branches":
                p.end(p.tag("sums", p.keyed(numbers).flatMap(new Sum()))
                        .union(p.tag("seen", p.keyed(numbers.filter(n -> n % 2 == 0)).process(new Seen()))));
                return;
            case "twin-branches":
                p.end(p.tag("a", p.keyed(numbers).flatMap(new Sum())).union(p.tag("b", p.keyed(numbers).flatMap(new Sum()))));
                return;
            default:
                throw new IllegalArgumentException("no job " + job);
        }
    }

    /** A query: its operators in the order of the stream graph. */
    private static void query(JsonNode request, Program p) throws Exception {
        StreamTableEnvironment tables = StreamTableEnvironment.create(p.env);
        for (JsonNode ddl : request.get("ddl")) {
            tables.executeSql(ddl.asText());
        }
        Table result = tables.sqlQuery(request.get("query").asText());
        tables.toChangelogStream(result).map(new Count<Row>(p.run));
    }

    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        String run = UUID.randomUUID().toString();
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(request.get("parallelism").asInt());
        env.setMaxParallelism(8);
        if (!request.get("chaining").asBoolean()) {
            env.disableOperatorChaining();
        }
        Program program = new Program(env, run);
        if (request.hasNonNull("query")) {
            query(request, program);
        } else {
            build(request.get("job").asText(), program);
        }
        StreamGraph graph = env.getStreamGraph(false);
        Map<Integer, byte[]> hashes = new StreamGraphHasherV2().traverseStreamGraphAndGenerateHashes(graph);
        Map<Integer, StreamNode> nodes = new TreeMap<>();
        for (StreamNode node : graph.getStreamNodes()) {
            nodes.put(node.getId(), node);
        }
        Map<String, String> tagged = new LinkedHashMap<>();
        program.tags.forEach((tag, node) -> tagged.put(tag, StringUtils.byteToHexString(hashes.get(node))));
        List<List<String>> ordered = new ArrayList<>();
        nodes.forEach((id, node) -> ordered.add(List.of(node.getOperatorName(), StringUtils.byteToHexString(hashes.get(id)))));
        JobID job = cluster.submit(env, null, false);
        try {
            int records = request.get("records").asInt();
            Board board = Board.of(run);
            cluster.await(job, records + " records, got " + board.records.size(), () -> board.records.size() >= records);
            Map<String, Object> out = Values.single("tags", tagged);
            out.put("nodes", ordered);
            out.put("graph", cluster.rest("/jobs/" + job));
            out.put("savepoint", cluster.savepoint(job, request.get("savepoint").asText(), "CANONICAL"));
            return out;
        } finally {
            cluster.cancel(job);
            Board.forget(run);
        }
    }
}
