package harness;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.ReduceFunction;
import org.apache.flink.api.common.state.AggregatingState;
import org.apache.flink.api.common.state.AggregatingStateDescriptor;
import org.apache.flink.api.common.state.BroadcastState;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ReducingState;
import org.apache.flink.api.common.state.ReducingStateDescriptor;
import org.apache.flink.api.common.state.State;
import org.apache.flink.api.common.state.StateDescriptor;
import org.apache.flink.api.common.state.StateTtlConfig;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.typeutils.runtime.TupleSerializer;
import org.apache.flink.runtime.state.KeyedStateBackend;
import org.apache.flink.runtime.state.StateInitializationContext;
import org.apache.flink.runtime.state.VoidNamespace;
import org.apache.flink.runtime.state.VoidNamespaceSerializer;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.InternalTimer;
import org.apache.flink.streaming.api.operators.InternalTimerService;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.api.operators.Triggerable;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.api.windowing.windows.GlobalWindow;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.streaming.runtime.streamrecord.StreamElementSerializer;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;

/**
 * An operator that registers the states it is told, as a job's own operator would, and reports every key, value, timer and
 * operator-state row that Flink restored; later lets all event-time timers fire.
 */
final class Inspector extends AbstractStreamOperator<Long>
        implements OneInputStreamOperator<Long, Long>, Triggerable<Object, Object> {
    private final String run;
    private final String spec;
    private transient Board board;
    private transient JsonNode asked;
    private transient Map<String, Object> operatorState;
    private transient boolean fired;

    Inspector(String run, JsonNode spec) {
        this.run = run;
        this.spec = spec.toString();
    }

    @Override
    public void initializeState(StateInitializationContext context) throws Exception {
        super.initializeState(context);
        board = Board.of(run);
        asked = new ObjectMapper().readTree(spec);
        operatorState = new LinkedHashMap<>();
        for (JsonNode s : asked.path("operator_states")) {
            operatorState.put(s.get("name").asText(), operatorRows(context, s));
        }
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private Object operatorRows(StateInitializationContext context, JsonNode s) throws Exception {
        String name = s.get("name").asText();
        if (s.get("mode").asText().equals("broadcast")) {
            BroadcastState<Object, Object> state = context.getOperatorStateStore().getBroadcastState(
                    new MapStateDescriptor<>(name, Types.parse(s.get("key").asText()), Types.parse(s.get("type").asText())));
            for (int n = 1; n <= 2 && s.hasNonNull("fill"); n++) {
                state.put("x" + n, old(s.get("fill").asText(), n));
            }
            return Values.entries(state.entries());
        }
        ListStateDescriptor<Object> d = new ListStateDescriptor<>(name, Types.parse(s.get("type").asText()));
        boolean union = s.get("mode").asText().equals("union");
        ListState<Object> state = union
                ? context.getOperatorStateStore().getUnionListState(d)
                : context.getOperatorStateStore().getListState(d);
        for (int n = 1; n <= 2 && s.hasNonNull("fill"); n++) {
            state.add(old(s.get("fill").asText(), n));
        }
        List<Object> rows = Values.list(state.get());
        if (union && subtask() > 0) {
            // Every subtask got all of it: one keeps it for the next snapshot.
            state.clear();
        }
        return rows;
    }

    private int subtask() throws Exception {
        Object context = getRuntimeContext();
        try {
            return (Integer) Reflect.call(Reflect.call(context, "getTaskInfo"), "getIndexOfThisSubtask");
        } catch (NoSuchMethodException e) {
            return (Integer) Reflect.call(context, "getIndexOfThisSubtask");
        }
    }

    @Override
    public void open() throws Exception {
        super.open();
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("operator", asked.get("name").asText());
        found.put("subtask", subtask());
        found.put("operator_states", operatorState);
        if (asked.hasNonNull("key")) {
            KeyedStateBackend<Object> backend = getKeyedStateBackend();
            Map<String, Object> states = new LinkedHashMap<>();
            try {
                for (JsonNode s : asked.path("states")) {
                    states.put(s.get("name").asText(), keyedRows(backend, s));
                }
            } catch (Throwable e) {
                // As an operator of a job would fail, without the others.
                if (!asked.path("alone").asBoolean()) {
                    throw e;
                }
                found.put("failed", org.apache.flink.util.ExceptionUtils.stringifyException(e));
            }
            found.put("states", states);
            timers(backend, found);
        }
        board.opened.add(found);
        poll(0);
    }

    // ---- keyed state

    private List<Object> keyedRows(KeyedStateBackend<Object> backend, JsonNode s) throws Exception {
        TypeSerializer<Object> namespaces = namespaces(s.path("namespace").asText("VoidNamespace"));
        StateDescriptor<?, ?> descriptor = descriptor(s);
        if (s.path("ttl").asBoolean()) {
            descriptor.enableTimeToLive(ttl());
        }
        backend.getPartitionedState(initial(namespaces), namespaces, cast(descriptor));
        List<Tuple2<Object, Object>> keys;
        try (Stream<Tuple2<Object, Object>> all = backend.getKeysAndNamespaces(descriptor.getName())) {
            keys = all.map(t -> Tuple2.of(t.f0, t.f1)).collect(Collectors.toList());
        }
        if (s.hasNonNull("fill")) {
            keys = Arrays.asList(Tuple2.of(1L, initial(namespaces)), Tuple2.of(2L, initial(namespaces)));
            fill(backend, backend.getPartitionedState(initial(namespaces), namespaces, cast(descriptor)), s.get("fill").asText());
        }
        if (s.hasNonNull("keys")) {
            List<?> made = (List<?>) Class.forName(s.get("keys").asText()).getMethod("keys").invoke(null);
            keys = number(backend, backend.getPartitionedState(initial(namespaces), namespaces, cast(descriptor)), made);
        }
        if (s.hasNonNull("key_fill")) {
            List<Object> made = new ArrayList<>();
            for (int n = 1; n <= 12; n++) {
                made.add(old(s.get("key_fill").asText(), n));
            }
            keys = number(backend, backend.getPartitionedState(initial(namespaces), namespaces, cast(descriptor)), made);
        }
        List<Object> rows = new ArrayList<>();
        for (Tuple2<Object, Object> k : keys) {
            backend.setCurrentKey(k.f0);
            State state = backend.getPartitionedState(k.f1, namespaces, cast(descriptor));
            Map<String, Object> row = Values.single("key", Values.of(k.f0));
            if (!(k.f1 instanceof VoidNamespace)) {
                row.put("namespace", Values.of(k.f1));
            }
            row.put("value", value(state, s.get("type").asText()));
            rows.add(row);
            if (asked.path("append").asBoolean() && state instanceof ListState) {
                append(state);
            }
        }
        return rows;
    }

    /** Add the first element of a list to its end. */
    @SuppressWarnings("unchecked")
    private static void append(State state) throws Exception {
        ListState<Object> list = (ListState<Object>) state;
        Iterable<Object> items = list.get();
        if (items != null && items.iterator().hasNext()) {
            list.add(items.iterator().next());
        }
    }

    /** Write the number of each key. */
    @SuppressWarnings("unchecked")
    private static List<Tuple2<Object, Object>> number(KeyedStateBackend<Object> backend, State state, List<?> made) throws Exception {
        List<Tuple2<Object, Object>> keys = new ArrayList<>();
        for (Object key : made) {
            backend.setCurrentKey(key);
            ((ValueState<Object>) state).update(keys.size());
            keys.add(Tuple2.of(key, VoidNamespace.INSTANCE));
        }
        return keys;
    }

    /** A value that a class of an old job, such as {@code evolved.Evolved}, has of one of its classes. */
    private static Object old(String type, int n) throws Exception {
        Method values = Class.forName(type.substring(0, type.indexOf('$'))).getMethod("of", String.class, int.class);
        return values.invoke(null, type, n);
    }

    /** Write values of an old job. */
    @SuppressWarnings("unchecked")
    private static void fill(KeyedStateBackend<Object> backend, State state, String type) throws Exception {
        for (int n = 1; n <= 2; n++) {
            backend.setCurrentKey((long) n);
            Object value = old(type, n);
            if (state instanceof ValueState) {
                ((ValueState<Object>) state).update(value);
            } else if (state instanceof MapState) {
                ((MapState<Object, Object>) state).put("x", value);
            } else {
                ((ListState<Object>) state).update(Arrays.asList(value, old(type, n + 5)));
            }
        }
    }

    @SuppressWarnings("unchecked")
    private static StateDescriptor<State, ?> cast(StateDescriptor<?, ?> descriptor) {
        return (StateDescriptor<State, ?>) descriptor;
    }

    /** So long that nothing of a test expires. */
    private static StateTtlConfig ttl() throws Exception {
        Object time;
        Class<?> cls;
        try {
            StateTtlConfig.class.getMethod("newBuilder", java.time.Duration.class);
            cls = java.time.Duration.class;
            time = java.time.Duration.ofDays(36500);
        } catch (NoSuchMethodException e) {
            cls = Class.forName("org.apache.flink.api.common.time.Time");
            time = cls.getMethod("days", long.class).invoke(null, 36500L);
        }
        return ((StateTtlConfig.Builder) StateTtlConfig.class.getMethod("newBuilder", cls).invoke(null, time)).build();
    }

    private StateDescriptor<?, ?> descriptor(JsonNode s) throws Exception {
        String name = s.get("name").asText();
        String type = s.get("type").asText();
        switch (s.get("kind").asText()) {
            case "value":
                return new ValueStateDescriptor<>(name, Types.parse(type));
            case "list":
                TypeSerializer<Object> internal = internal(type);
                if (internal != null) {
                    return new ListStateDescriptor<>(name, internal);
                }
                return new ListStateDescriptor<>(name, Types.parse(type));
            case "map":
                return new MapStateDescriptor<>(name, Types.parse(s.get("map_key").asText()), Types.parse(type));
            case "reducing":
                return new ReducingStateDescriptor<Object>(name, new Last(), Types.parse(type));
            case "aggregating":
                return new AggregatingStateDescriptor<Object, Object, Object>(name, new Same(), Types.parse(type));
            default:
                throw new IllegalArgumentException("no kind " + s);
        }
    }

    /** Serializers of what windows keep besides their contents: no type information describes them. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    private TypeSerializer<Object> internal(String type) throws Exception {
        if (type.startsWith("ELEMENT<")) {
            String inner = type.substring(8, type.length() - 1);
            return (TypeSerializer) new StreamElementSerializer<>(
                    Reflect.serializer(Types.<Object>parse(inner), getExecutionConfig()));
        }
        if (type.equals("TUPLE<TIMEWINDOW,TIMEWINDOW>")) {
            TypeSerializer<?>[] both = {new TimeWindow.Serializer(), new TimeWindow.Serializer()};
            return (TypeSerializer) new TupleSerializer(Tuple2.class, both);
        }
        return null;
    }

    private static Object value(State state, String type) throws Exception {
        if (type.startsWith("ROWDATA<")) {
            return RowDatas.fields(((ValueState<?>) state).value(), Types.parse(type));
        }
        if (state instanceof ValueState) {
            return Values.of(((ValueState<?>) state).value());
        }
        if (state instanceof MapState) {
            return looked(cast(state));
        }
        if (state instanceof ReducingState) {
            return Values.of(((ReducingState<?>) state).get());
        }
        if (state instanceof AggregatingState) {
            return Values.of(((AggregatingState<?, ?>) state).get());
        }
        Iterable<?> items = ((ListState<?>) state).get();
        return items == null ? null : Values.list(items);
    }

    @SuppressWarnings("unchecked")
    private static MapState<Object, Object> cast(State state) {
        return (MapState<Object, Object>) state;
    }

    /** The entries of a map, each value by its key, as a job would look it up. */
    private static Object looked(MapState<Object, Object> state) throws Exception {
        Iterable<Map.Entry<Object, Object>> entries = state.entries();
        if (entries == null) {
            return null;
        }
        List<Object> rows = new ArrayList<>();
        for (Map.Entry<Object, Object> e : entries) {
            if (!state.contains(e.getKey())) {
                throw new IllegalStateException("no entry of key " + e.getKey());
            }
            rows.add(Arrays.asList(Values.of(e.getKey()), Values.of(state.get(e.getKey()))));
        }
        return Values.single("$map", rows);
    }

    private static final class Last implements ReduceFunction<Object> {
        @Override
        public Object reduce(Object a, Object b) {
            return b;
        }
    }

    /** The result is the accumulator. */
    private static final class Same implements AggregateFunction<Object, Object, Object> {
        @Override
        public Object createAccumulator() {
            return null;
        }

        @Override
        public Object add(Object value, Object accumulator) {
            return value;
        }

        @Override
        public Object getResult(Object accumulator) {
            return accumulator;
        }

        @Override
        public Object merge(Object a, Object b) {
            return b;
        }
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static TypeSerializer<Object> namespaces(String name) {
        switch (name) {
            case "VoidNamespace":
                return (TypeSerializer) VoidNamespaceSerializer.INSTANCE;
            case "TimeWindow":
                return (TypeSerializer) new TimeWindow.Serializer();
            case "GlobalWindow":
                return (TypeSerializer) new GlobalWindow.Serializer();
            default:
                throw new IllegalArgumentException("no namespace " + name);
        }
    }

    private static Object initial(TypeSerializer<?> namespaces) {
        if (namespaces instanceof TimeWindow.Serializer) {
            return new TimeWindow(0, 1);
        }
        return namespaces instanceof GlobalWindow.Serializer ? (Object) GlobalWindow.get() : VoidNamespace.INSTANCE;
    }

    // ---- timers

    private void timers(KeyedStateBackend<Object> backend, Map<String, Object> found) throws Exception {
        List<Object> event = new ArrayList<>();
        List<Object> processing = new ArrayList<>();
        for (JsonNode t : asked.path("timers")) {
            InternalTimerService<Object> service = getInternalTimerService(
                    t.get("service").asText(), namespaces(t.get("namespace").asText()), this);
            service.forEachEventTimeTimer((n, time) -> event.add(timer(backend.getCurrentKey(), n, time)));
            service.forEachProcessingTimeTimer((n, time) -> processing.add(timer(backend.getCurrentKey(), n, time)));
        }
        found.put("event_time_timers", event);
        found.put("processing_time_timers", processing);
    }

    private static Map<String, Object> timer(Object key, Object namespace, long time) {
        Map<String, Object> row = Values.single("key", Values.of(key));
        row.put("namespace", Values.of(namespace));
        row.put("timestamp", time);
        return row;
    }

    private void fired(String domain, InternalTimer<Object, Object> t) {
        if (!getKeyedStateBackend().getCurrentKey().equals(t.getKey())) {
            throw new IllegalStateException("timer of " + t.getKey() + " fired under another key");
        }
        Map<String, Object> row = timer(t.getKey(), t.getNamespace(), t.getTimestamp());
        row.put("operator", asked.get("name").asText());
        row.put("domain", domain);
        board.fired.add(row);
    }

    @Override
    public void onEventTime(InternalTimer<Object, Object> timer) {
        fired("event", timer);
    }

    @Override
    public void onProcessingTime(InternalTimer<Object, Object> timer) {
        fired("processing", timer);
    }

    /** The job's source stays silent: what the main thread asks for is seen by asking it, in the task's own thread. */
    private void poll(long now) throws Exception {
        if (board.fire && !fired) {
            fired = true;
            processWatermark(Watermark.MAX_WATERMARK);
            board.finished.add(asked.get("name").asText() + "/" + subtask());
        }
        getProcessingTimeService().registerTimer(getProcessingTimeService().getCurrentProcessingTime() + 20, this::poll);
    }

    // ---- the stream, which carries nothing

    @Override
    public void processElement(StreamRecord<Long> element) {
        throw new IllegalStateException("no element is ever sent");
    }
}
