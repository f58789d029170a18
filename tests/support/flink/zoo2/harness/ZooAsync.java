package harness;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.RuntimeContext;
import org.apache.flink.api.common.state.v2.AggregatingState;
import org.apache.flink.api.common.state.v2.AggregatingStateDescriptor;
import org.apache.flink.api.common.state.v2.ListState;
import org.apache.flink.api.common.state.v2.ListStateDescriptor;
import org.apache.flink.api.common.state.v2.MapState;
import org.apache.flink.api.common.state.v2.MapStateDescriptor;
import org.apache.flink.api.common.state.v2.ReducingState;
import org.apache.flink.api.common.state.v2.ReducingStateDescriptor;
import org.apache.flink.api.common.state.v2.State;
import org.apache.flink.api.common.state.v2.StateDescriptor;
import org.apache.flink.api.common.state.v2.ValueState;
import org.apache.flink.api.common.state.v2.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/** The operators of {@link ZooJob} with the states of Flink 2's asynchronous API. */
final class ZooAsync {
    private ZooAsync() {}

    /** Register the states of an operator. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    static List<State> registered(RuntimeContext store, ZooData.Op op, AggregateFunction mean) throws Exception {
        List<State> states = new ArrayList<>();
        for (ZooData.St s : op.states) {
            TypeInformation type = s.type;
            StateDescriptor d;
            switch (s.kind) {
                case "value":
                    d = new ValueStateDescriptor(s.name, type);
                    break;
                case "list":
                    d = new ListStateDescriptor(s.name, type);
                    break;
                case "map":
                    d = new MapStateDescriptor(s.name, (TypeInformation) s.key, type);
                    break;
                case "reducing":
                    d = new ReducingStateDescriptor(s.name, new ZooJob.Sum(), type);
                    break;
                default:
                    d = new AggregatingStateDescriptor(s.name, mean, type);
            }
            if (s.ttl) {
                d.enableTimeToLive(ZooJob.ttl());
            }
            states.add(d instanceof ValueStateDescriptor ? store.getState((ValueStateDescriptor) d)
                    : d instanceof ListStateDescriptor ? store.getListState((ListStateDescriptor) d)
                    : d instanceof MapStateDescriptor ? store.getMapState((MapStateDescriptor) d)
                    : d instanceof ReducingStateDescriptor ? store.getReducingState((ReducingStateDescriptor) d)
                    : store.getAggregatingState((AggregatingStateDescriptor) d));
        }
        return states;
    }

    static final class Writer extends KeyedProcessFunction<Object, Long, Long> {
        private final String run;
        private final int op;
        private transient List<State> states;

        Writer(String run, int op) {
            this.run = run;
            this.op = op;
        }

        @Override
        public void open(OpenContext context) throws Exception {
            states = registered(getRuntimeContext(), ZooJob.RUNS.get(run).ops.get(op), new ZooJob.Mean());
        }

        @SuppressWarnings({"unchecked", "rawtypes"})
        @Override
        public void processElement(Long value, Context ctx, Collector<Long> out) throws Exception {
            ZooJob job = ZooJob.RUNS.get(run);
            int i = job.events.get(value.intValue())[1];
            ZooData.Op mine = job.ops.get(op);
            for (int n = 0; n < states.size(); n++) {
                Object v = mine.states.get(n).value.apply(i);
                State state = states.get(n);
                if (v == ZooData.SKIP) {
                    continue;
                }
                if (v == ZooData.CLEAR) {
                    state.asyncClear();
                } else if (state instanceof ValueState) {
                    ((ValueState) state).asyncUpdate(v);
                } else if (state instanceof MapState) {
                    for (Map.Entry<?, ?> e : ((Map<?, ?>) v).entrySet()) {
                        ((MapState) state).asyncPut(e.getKey(), e.getValue());
                    }
                } else if (state instanceof ReducingState) {
                    ((ReducingState) state).asyncAdd(v);
                } else if (state instanceof AggregatingState) {
                    ((AggregatingState) state).asyncAdd(v);
                } else {
                    ((ListState) state).asyncAddAll((List) v);
                }
            }
            if (mine.timers) {
                ctx.timerService().registerEventTimeTimer(ZooJob.EVENT + i);
                ctx.timerService().registerProcessingTimeTimer(ZooJob.PROCESSING + i / 2);
            }
            job.done.incrementAndGet();
        }
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    static void add(DataStream<Long> input, String run, int o, ZooData.Op op) {
        input.keyBy(new ZooJob.Key(run), (TypeInformation) op.keyType).enableAsyncState()
                .process((KeyedProcessFunction) new Writer(run, o))
                .returns(org.apache.flink.api.common.typeinfo.Types.LONG)
                .setParallelism(op.parallelism).setMaxParallelism(op.maxParallelism).uid(op.uid);
    }
}
