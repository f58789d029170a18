package jobs;

import java.time.Duration;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichFlatMapFunction;
import org.apache.flink.api.common.state.AggregatingState;
import org.apache.flink.api.common.state.AggregatingStateDescriptor;
import org.apache.flink.api.common.state.BroadcastState;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ReducingState;
import org.apache.flink.api.common.state.ReducingStateDescriptor;
import org.apache.flink.api.common.state.StateTtlConfig;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/** A running sum, kept in some state. */
abstract class Summing extends RichFlatMapFunction<String, String> {
    abstract int add(String key, int number) throws Exception;

    @Override
    public void flatMap(String line, Collector<String> out) throws Exception {
        String key = line.split(",")[0];
        out.collect(key + "=" + add(key, Job.number(line)));
    }
}

/** The classes below declare the state. */
abstract class SummingValue extends Summing {
    transient ValueState<Integer> sum;

    int add(String key, int number) throws Exception {
        sum.update((sum.value() == null ? 0 : sum.value()) + number);
        return sum.value();
    }
}

class InValue extends SummingValue {
    @Override
    public void open(OpenContext context) throws Exception {
        sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT));
    }
}

final class StateSame extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new InValue()).uid("sums");
    }
}

final class StateValueToList extends Job {
    static final class Sums extends Summing {
        transient ValueState<Integer> sum; // old
        transient ListState<Integer> sum; // new

        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT)); // old
            sum = getRuntimeContext().getListState(new ListStateDescriptor<>("sum", Types.INT)); // new
        }

        int add(String key, int number) throws Exception {
            sum.update((sum.value() == null ? 0 : sum.value()) + number); // old
            return sum.value(); // old
            sum.add(number); // new
            int all = 0; // new
            for (int one : sum.get()) { // new
                all += one; // new
            } // new
            return all; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Sums()).uid("sums");
    }
}

final class StateListToValue extends Job {
    static final class Sums extends Summing {
        transient ListState<Integer> sum; // old
        transient ValueState<Integer> sum; // new

        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getListState(new ListStateDescriptor<>("sum", Types.INT)); // old
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT)); // new
        }

        int add(String key, int number) throws Exception {
            sum.add(number); // old
            sum.update(number); // new
            return number;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Sums()).uid("sums");
    }
}

final class StateMapToValue extends Job {
    static final class Sums extends Summing {
        transient MapState<String, Integer> sum; // old
        transient ValueState<Integer> sum; // new

        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getMapState(new MapStateDescriptor<>("sum", Types.STRING, Types.INT)); // old
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT)); // new
        }

        int add(String key, int number) throws Exception {
            sum.put(key, number); // old
            sum.update(number); // new
            return number;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Sums()).uid("sums");
    }
}

final class StateValueToMap extends Job {
    static final class Sums extends Summing {
        transient ValueState<Integer> sum; // old
        transient MapState<String, Integer> sum; // new

        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT)); // old
            sum = getRuntimeContext().getMapState(new MapStateDescriptor<>("sum", Types.STRING, Types.INT)); // new
        }

        int add(String key, int number) throws Exception {
            sum.update(number); // old
            sum.put(key, number); // new
            return number;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Sums()).uid("sums");
    }
}

final class StateValueToReducing extends Job {
    static final class Sums extends Summing {
        transient ValueState<Integer> sum; // old
        transient ReducingState<Integer> sum; // new

        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT)); // old
            sum = getRuntimeContext().getReducingState(new ReducingStateDescriptor<>("sum", Integer::sum, Types.INT)); // new
        }

        int add(String key, int number) throws Exception {
            sum.update((sum.value() == null ? 0 : sum.value()) + number); // old
            return sum.value(); // old
            sum.add(number); // new
            return sum.get(); // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Sums()).uid("sums");
    }
}

final class StateRenamed extends Job {
    static final class Sums extends SummingValue {
        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT)); // old
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("total", Types.INT)); // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Sums()).uid("sums");
    }
}

/** The old state is gone, and its name is a constant of the class. */
final class StateRemoved extends Job {
    static final class Sums extends Summing {
        transient ValueState<Integer> sum; // old

        @Override // old
        public void open(OpenContext context) throws Exception { // old
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT)); // old
        } // old

        int add(String key, int number) throws Exception {
            sum.update((sum.value() == null ? 0 : sum.value()) + number); // old
            return sum.value(); // old
            return number; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Sums()).uid("sums");
    }
}

final class StateIntToLong extends Job {
    static final class Sums extends Summing {
        transient ValueState<Integer> sum; // old
        transient ValueState<Long> sum; // new

        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT)); // old
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.LONG)); // new
        }

        int add(String key, int number) throws Exception {
            sum.update((sum.value() == null ? 0 : sum.value()) + number); // old
            sum.update((sum.value() == null ? 0L : sum.value()) + number); // new
            return sum.value().intValue();
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Sums()).uid("sums");
    }
}

final class StateMapKey extends Job {
    static final class Sums extends Summing {
        transient MapState<String, Integer> sum; // old
        transient MapState<Integer, Integer> sum; // new

        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getMapState(new MapStateDescriptor<>("sum", Types.STRING, Types.INT)); // old
            sum = getRuntimeContext().getMapState(new MapStateDescriptor<>("sum", Types.INT, Types.INT)); // new
        }

        int add(String key, int number) throws Exception {
            sum.put(key, number); // old
            sum.put(1, number); // new
            return number;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Sums()).uid("sums");
    }
}

final class StateTtlOn extends Job {
    static final class Sums extends SummingValue {
        @Override
        public void open(OpenContext context) throws Exception {
            ValueStateDescriptor<Integer> sums = new ValueStateDescriptor<>("sum", Types.INT);
            sums.enableTimeToLive(StateTtlConfig.newBuilder(Duration.ofDays(9)).build()); // new
            sum = getRuntimeContext().getState(sums);
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Sums()).uid("sums");
    }
}

final class StateTtlOff extends Job {
    static final class Sums extends SummingValue {
        @Override
        public void open(OpenContext context) throws Exception {
            ValueStateDescriptor<Integer> sums = new ValueStateDescriptor<>("sum", Types.INT);
            sums.enableTimeToLive(StateTtlConfig.newBuilder(Duration.ofDays(9)).build()); // old
            sum = getRuntimeContext().getState(sums);
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Sums()).uid("sums");
    }
}

final class StateTtlLonger extends Job {
    static final class Sums extends SummingValue {
        @Override
        public void open(OpenContext context) throws Exception {
            ValueStateDescriptor<Integer> sums = new ValueStateDescriptor<>("sum", Types.INT);
            sums.enableTimeToLive(StateTtlConfig.newBuilder(Duration.ofDays(9)).build()); // old
            sums.enableTimeToLive(StateTtlConfig.newBuilder(Duration.ofDays(99)).build()); // new
            sum = getRuntimeContext().getState(sums);
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Sums()).uid("sums");
    }
}

final class StateKeyType extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return lines
                .keyBy(line -> line.split(",")[0]) // old
                .keyBy(line -> Tuple2.of(line.split(",")[0], 1), Types.TUPLE(Types.STRING, Types.INT)) // new
                .flatMap(new InValue()).uid("sums");
    }
}

final class StateKeySelector extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return lines
                .keyBy(line -> line.split(",")[0]) // old
                .keyBy(line -> "tenant-" + line.split(",")[0]) // new
                .flatMap(new InValue()).uid("sums");
    }
}

/** Holds the sum of a subtask in operator state. */
abstract class Held extends Summing implements CheckpointedFunction {
    transient ListState<Integer> held;
    int total;

    int add(String key, int number) {
        total += number;
        return total;
    }

    abstract ListState<Integer> state(FunctionInitializationContext context) throws Exception;

    @Override
    public void initializeState(FunctionInitializationContext context) throws Exception {
        held = state(context);
        for (int one : held.get()) {
            total += one;
        }
    }

    @Override
    public void snapshotState(FunctionSnapshotContext context) throws Exception {
        held.clear();
        held.add(total);
    }
}

final class OperatorListSame extends Job {
    static final class Sums extends Held {
        ListState<Integer> state(FunctionInitializationContext context) throws Exception {
            return context.getOperatorStateStore().getListState(new ListStateDescriptor<>("total", Types.INT));
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return lines.flatMap(new Sums()).uid("sums");
    }
}

final class OperatorListToUnion extends Job {
    static final class Sums extends Held {
        ListState<Integer> state(FunctionInitializationContext context) throws Exception {
            return context.getOperatorStateStore().getListState(new ListStateDescriptor<>("total", Types.INT)); // old
            return context.getOperatorStateStore().getUnionListState(new ListStateDescriptor<>("total", Types.INT)); // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return lines.flatMap(new Sums()).uid("sums");
    }
}

final class OperatorUnionToList extends Job {
    static final class Sums extends Held {
        ListState<Integer> state(FunctionInitializationContext context) throws Exception {
            return context.getOperatorStateStore().getUnionListState(new ListStateDescriptor<>("total", Types.INT)); // old
            return context.getOperatorStateStore().getListState(new ListStateDescriptor<>("total", Types.INT)); // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return lines.flatMap(new Sums()).uid("sums");
    }
}

final class OperatorListRenamed extends Job {
    static final class Sums extends Held {
        ListState<Integer> state(FunctionInitializationContext context) throws Exception {
            return context.getOperatorStateStore().getListState(new ListStateDescriptor<>("total", Types.INT)); // old
            return context.getOperatorStateStore().getListState(new ListStateDescriptor<>("sums", Types.INT)); // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return lines.flatMap(new Sums()).uid("sums");
    }
}

final class OperatorListElement extends Job {
    static final class Sums extends Summing implements CheckpointedFunction {
        transient ListState<Integer> held; // old
        transient ListState<Long> held; // new
        int total;

        int add(String key, int number) {
            total += number;
            return total;
        }

        @Override
        public void initializeState(FunctionInitializationContext context) throws Exception {
            held = context.getOperatorStateStore().getListState(new ListStateDescriptor<>("total", Types.INT)); // old
            for (int one : held.get()) { // old
            held = context.getOperatorStateStore().getListState(new ListStateDescriptor<>("total", Types.LONG)); // new
            for (long one : held.get()) { // new
                total += one;
            }
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) throws Exception {
            held.clear();
            held.add(total); // old
            held.add((long) total); // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return lines.flatMap(new Sums()).uid("sums");
    }
}

final class OperatorListPojo extends Job {
    public static final class Total {
        public int sum;
        public String note = "-"; // new
    }

    static final class Sums extends Summing implements CheckpointedFunction {
        transient ListState<Total> held;
        int total;

        int add(String key, int number) {
            total += number;
            return total;
        }

        @Override
        public void initializeState(FunctionInitializationContext context) throws Exception {
            held = context.getOperatorStateStore().getListState(new ListStateDescriptor<>("total", Total.class));
            for (Total one : held.get()) {
                total += one.sum;
            }
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) throws Exception {
            Total one = new Total();
            one.sum = total;
            held.clear();
            held.add(one);
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return lines.flatMap(new Sums()).uid("sums");
    }
}

/** Holds the sum in broadcast state. */
abstract class HeldByAll extends Summing implements CheckpointedFunction {
    transient BroadcastState<String, Integer> held;

    int add(String key, int number) throws Exception {
        Integer before = held.get("all");
        held.put("all", (before == null ? 0 : before) + number);
        return held.get("all");
    }

    @Override
    public void snapshotState(FunctionSnapshotContext context) {}
}

final class BroadcastSame extends Job {
    static final class Sums extends HeldByAll {
        @Override
        public void initializeState(FunctionInitializationContext context) throws Exception {
            held = context.getOperatorStateStore().getBroadcastState(new MapStateDescriptor<>("total", Types.STRING, Types.INT));
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return lines.flatMap(new Sums()).uid("sums");
    }
}

final class BroadcastRenamed extends Job {
    static final class Sums extends HeldByAll {
        @Override
        public void initializeState(FunctionInitializationContext context) throws Exception {
            held = context.getOperatorStateStore().getBroadcastState(new MapStateDescriptor<>("total", Types.STRING, Types.INT)); // old
            held = context.getOperatorStateStore().getBroadcastState(new MapStateDescriptor<>("rules", Types.STRING, Types.INT)); // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return lines.flatMap(new Sums()).uid("sums");
    }
}

final class BroadcastToList extends Job {
    static final class Sums extends HeldByAll { // old
        @Override // old
        public void initializeState(FunctionInitializationContext context) throws Exception { // old
            held = context.getOperatorStateStore().getBroadcastState(new MapStateDescriptor<>("total", Types.STRING, Types.INT)); // old
        } // old
    static final class Sums extends Held { // new
        ListState<Integer> state(FunctionInitializationContext context) throws Exception { // new
            return context.getOperatorStateStore().getListState(new ListStateDescriptor<>("total", Types.INT)); // new
        } // new
    }

    public DataStream<?> build(DataStream<String> lines) {
        return lines.flatMap(new Sums()).uid("sums");
    }
}

final class ListToBroadcast extends Job {
    static final class Sums extends Held { // old
        ListState<Integer> state(FunctionInitializationContext context) throws Exception { // old
            return context.getOperatorStateStore().getListState(new ListStateDescriptor<>("total", Types.INT)); // old
        } // old
    static final class Sums extends HeldByAll { // new
        @Override // new
        public void initializeState(FunctionInitializationContext context) throws Exception { // new
            held = context.getOperatorStateStore().getBroadcastState(new MapStateDescriptor<>("total", Types.STRING, Types.INT)); // new
        } // new
    }

    public DataStream<?> build(DataStream<String> lines) {
        return lines.flatMap(new Sums()).uid("sums");
    }
}

final class KeyedToOperator extends Job {
    static final class Sums extends Held { // new
        ListState<Integer> state(FunctionInitializationContext context) throws Exception { // new
            return context.getOperatorStateStore().getListState(new ListStateDescriptor<>("sum", Types.INT)); // new
        } // new
    } // new

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new InValue()).uid("sums"); // old
        return lines.flatMap(new Sums()).uid("sums"); // new
    }
}

/** Tells the sum of a key when its timer is due. */
class Timed extends KeyedProcessFunction<String, String, String> {
    transient ValueState<Integer> sum;

    @Override
    public void open(OpenContext context) throws Exception {
        sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT));
    }

    @Override
    public void processElement(String line, Context context, Collector<String> out) throws Exception {
        sum.update((sum.value() == null ? 0 : sum.value()) + Job.number(line));
        context.timerService().registerEventTimeTimer(9_000);
    }

    @Override
    public void onTimer(long time, OnTimerContext context, Collector<String> out) throws Exception {
        out.collect(context.getCurrentKey() + "=" + sum.value());
    }
}

final class TimersSame extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).process(new Timed()).uid("timed");
    }
}

final class TimersToFlatMap extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines)
                .process(new Timed()).uid("timed"); // old
                .flatMap(new InValue()).uid("timed"); // new
    }
}

/** An operator with a timer service of another name. */
class TimedOperator extends org.apache.flink.streaming.api.operators.AbstractStreamOperator<String>
        implements org.apache.flink.streaming.api.operators.OneInputStreamOperator<String, String>,
                org.apache.flink.streaming.api.operators.Triggerable<String, org.apache.flink.runtime.state.VoidNamespace> {
    private final String service;
    private transient org.apache.flink.streaming.api.operators.InternalTimerService<org.apache.flink.runtime.state.VoidNamespace> timers;

    TimedOperator(String service) {
        this.service = service;
    }

    @Override
    public void open() throws Exception {
        timers = getInternalTimerService(service, org.apache.flink.runtime.state.VoidNamespaceSerializer.INSTANCE, this);
    }

    @Override
    public void processElement(org.apache.flink.streaming.runtime.streamrecord.StreamRecord<String> element) {
        timers.registerEventTimeTimer(org.apache.flink.runtime.state.VoidNamespace.INSTANCE, 9_000);
    }

    @Override
    public void onEventTime(org.apache.flink.streaming.api.operators.InternalTimer<String, org.apache.flink.runtime.state.VoidNamespace> timer) {
        output.collect(new org.apache.flink.streaming.runtime.streamrecord.StreamRecord<>(timer.getKey()));
    }

    @Override
    public void onProcessingTime(
            org.apache.flink.streaming.api.operators.InternalTimer<String, org.apache.flink.runtime.state.VoidNamespace> timer) {}
}

final class TimersRenamed extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines)
                .transform("timed", Types.STRING, new TimedOperator("alarms")) // old
                .transform("timed", Types.STRING, new TimedOperator("reminders")) // new
                .uid("timed");
    }
}
