package jobs;

import java.time.Duration;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.WindowedStream;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.EventTimeSessionWindows;
import org.apache.flink.streaming.api.windowing.assigners.GlobalWindows;
import org.apache.flink.streaming.api.windowing.assigners.SlidingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.TumblingProcessingTimeWindows;
import org.apache.flink.streaming.api.windowing.evictors.CountEvictor;
import org.apache.flink.streaming.api.windowing.triggers.ContinuousEventTimeTrigger;
import org.apache.flink.streaming.api.windowing.triggers.CountTrigger;
import org.apache.flink.streaming.api.windowing.triggers.EventTimeTrigger;
import org.apache.flink.streaming.api.windowing.triggers.PurgingTrigger;
import org.apache.flink.streaming.api.windowing.triggers.Trigger;
import org.apache.flink.streaming.api.windowing.triggers.TriggerResult;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.streaming.api.windowing.windows.Window;
import org.apache.flink.util.Collector;

final class All<W extends Window> extends ProcessWindowFunction<String, String, String, W> {
    @Override
    public void process(String key, Context context, Iterable<String> elements, Collector<String> out) {
        int sum = 0;
        for (String line : elements) {
            sum += Job.number(line);
        }
        out.collect(key + "=" + sum);
    }
}

final class Sum implements AggregateFunction<String, Integer, String> {
    public Integer createAccumulator() {
        return 0;
    }

    public Integer add(String line, Integer sum) {
        return sum + Job.number(line);
    }

    public String getResult(Integer sum) {
        return "sum=" + sum;
    }

    public Integer merge(Integer a, Integer b) {
        return a + b;
    }
}

/** Sums as a long number. */
final class LongSum implements AggregateFunction<String, Long, String> {
    public Long createAccumulator() {
        return 0L;
    }

    public Long add(String line, Long sum) {
        return sum + Job.number(line);
    }

    public String getResult(Long sum) {
        return "sum=" + sum;
    }

    public Long merge(Long a, Long b) {
        return a + b;
    }
}

/** A trigger of the job, with a state of its own. */
@SuppressWarnings({"unchecked", "rawtypes"})
final class OwnTrigger extends Trigger<String, TimeWindow> {
    private final ValueStateDescriptor seen;

    OwnTrigger(ValueStateDescriptor seen) {
        this.seen = seen;
    }

    public TriggerResult onElement(String line, long time, TimeWindow window, TriggerContext context) throws Exception {
        context.registerEventTimeTimer(window.maxTimestamp());
        ValueState state = (ValueState) context.getPartitionedState(seen);
        state.value();
        state.update(seen.getSerializer().createInstance());
        return TriggerResult.CONTINUE;
    }

    public TriggerResult onProcessingTime(long time, TimeWindow window, TriggerContext context) {
        return TriggerResult.CONTINUE;
    }

    public TriggerResult onEventTime(long time, TimeWindow window, TriggerContext context) {
        return time == window.maxTimestamp() ? TriggerResult.FIRE : TriggerResult.CONTINUE;
    }

    public void clear(TimeWindow window, TriggerContext context) {
        context.getPartitionedState(seen).clear();
        context.deleteEventTimeTimer(window.maxTimestamp());
    }
}

abstract class WindowedJob extends Job {
    static final Duration TEN = Duration.ofSeconds(10);
    static final Duration TWENTY = Duration.ofSeconds(20);

    static WindowedStream<String, String, TimeWindow> tumbling(DataStream<String> lines, Duration size) {
        return keyed(lines).window(TumblingEventTimeWindows.of(size));
    }
}

final class WindowSame extends WindowedJob {
    public DataStream<?> build(DataStream<String> lines) {
        return tumbling(lines, TEN).aggregate(new Sum()).uid("windows");
    }
}

final class WindowToSession extends WindowedJob {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines)
                .window(TumblingEventTimeWindows.of(TEN)) // old
                .window(EventTimeSessionWindows.withGap(TEN)) // new
                .aggregate(new Sum()).uid("windows");
    }
}

final class WindowFromSession extends WindowedJob {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines)
                .window(EventTimeSessionWindows.withGap(TEN)) // old
                .window(TumblingEventTimeWindows.of(TEN)) // new
                .aggregate(new Sum()).uid("windows");
    }
}

final class WindowSessionSame extends WindowedJob {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).window(EventTimeSessionWindows.withGap(TEN)).process(new All<>()).uid("windows");
    }
}

final class WindowSessionGap extends WindowedJob {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines)
                .window(EventTimeSessionWindows.withGap(TEN)) // old
                .window(EventTimeSessionWindows.withGap(Duration.ofSeconds(2))) // new
                .aggregate(new Sum()).uid("windows");
    }
}

final class WindowLarger extends WindowedJob {
    public DataStream<?> build(DataStream<String> lines) {
        return tumbling(lines, TEN) // old
        return tumbling(lines, TWENTY) // new
                .aggregate(new Sum()).uid("windows");
    }
}

final class WindowSmaller extends WindowedJob {
    public DataStream<?> build(DataStream<String> lines) {
        return tumbling(lines, TWENTY) // old
        return tumbling(lines, TEN) // new
                .process(new All<>()).uid("windows");
    }
}

final class WindowOffset extends WindowedJob {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines)
                .window(TumblingEventTimeWindows.of(TEN)) // old
                .window(TumblingEventTimeWindows.of(TEN, Duration.ofSeconds(5))) // new
                .aggregate(new Sum()).uid("windows");
    }
}

final class WindowToSliding extends WindowedJob {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines)
                .window(TumblingEventTimeWindows.of(TEN)) // old
                .window(SlidingEventTimeWindows.of(TEN, Duration.ofSeconds(5))) // new
                .aggregate(new Sum()).uid("windows");
    }
}

final class WindowToGlobal extends WindowedJob {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines)
                .window(TumblingEventTimeWindows.of(TEN)).aggregate(new Sum()) // old
                .window(GlobalWindows.create()).trigger(CountTrigger.of(2)).aggregate(new Sum()) // new
                .uid("windows");
    }
}

final class WindowToProcessingTime extends WindowedJob {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines)
                .window(TumblingEventTimeWindows.of(TEN)) // old
                .window(TumblingProcessingTimeWindows.of(TEN)) // new
                .aggregate(new Sum()).uid("windows");
    }
}

final class WindowEvictorAdded extends WindowedJob {
    public DataStream<?> build(DataStream<String> lines) {
        return tumbling(lines, TEN)
                .evictor(CountEvictor.of(100)) // new
                .process(new All<>()).uid("windows");
    }
}

final class WindowEvictorRemoved extends WindowedJob {
    public DataStream<?> build(DataStream<String> lines) {
        return tumbling(lines, TEN)
                .evictor(CountEvictor.of(100)) // old
                .process(new All<>()).uid("windows");
    }
}

final class WindowEvictorOther extends WindowedJob {
    public DataStream<?> build(DataStream<String> lines) {
        return tumbling(lines, TEN)
                .evictor(CountEvictor.of(100)) // old
                .evictor(CountEvictor.of(1)) // new
                .process(new All<>()).uid("windows");
    }
}

final class WindowToCountTrigger extends WindowedJob {
    public DataStream<?> build(DataStream<String> lines) {
        return tumbling(lines, TEN)
                .trigger(CountTrigger.of(2)) // new
                .aggregate(new Sum()).uid("windows");
    }
}

final class WindowFromCountTrigger extends WindowedJob {
    public DataStream<?> build(DataStream<String> lines) {
        return tumbling(lines, TEN)
                .trigger(CountTrigger.of(2)) // old
                .aggregate(new Sum()).uid("windows");
    }
}

final class WindowPurging extends WindowedJob {
    public DataStream<?> build(DataStream<String> lines) {
        return tumbling(lines, TEN)
                .trigger(PurgingTrigger.of(EventTimeTrigger.create())) // new
                .aggregate(new Sum()).uid("windows");
    }
}

final class WindowContinuous extends WindowedJob {
    public DataStream<?> build(DataStream<String> lines) {
        return tumbling(lines, TWENTY)
                .trigger(ContinuousEventTimeTrigger.of(Duration.ofSeconds(7))) // new
                .aggregate(new Sum()).uid("windows");
    }
}

final class WindowTriggerState extends WindowedJob {
    public DataStream<?> build(DataStream<String> lines) {
        return tumbling(lines, TEN)
                .trigger(new OwnTrigger(new ValueStateDescriptor<>("seen", Types.INT))) // old
                .trigger(new OwnTrigger(new ValueStateDescriptor<>("seen", Types.STRING))) // new
                .aggregate(new Sum()).uid("windows");
    }
}

final class WindowTriggerStateGone extends WindowedJob {
    public DataStream<?> build(DataStream<String> lines) {
        return tumbling(lines, TEN)
                .trigger(new OwnTrigger(new ValueStateDescriptor<>("seen", Types.INT))) // old
                .aggregate(new Sum()).uid("windows");
    }
}

final class WindowLatenessAdded extends WindowedJob {
    public DataStream<?> build(DataStream<String> lines) {
        return tumbling(lines, TEN)
                .allowedLateness(Duration.ofSeconds(30)) // new
                .aggregate(new Sum()).uid("windows");
    }
}

final class WindowLatenessRemoved extends WindowedJob {
    public DataStream<?> build(DataStream<String> lines) {
        return tumbling(lines, TEN)
                .allowedLateness(Duration.ofSeconds(30)) // old
                .aggregate(new Sum()).uid("windows");
    }
}

final class WindowReduceToAggregate extends WindowedJob {
    public DataStream<?> build(DataStream<String> lines) {
        return tumbling(lines, TEN)
                .reduce((a, b) -> a.split(",")[0] + "," + (number(a) + number(b)) + ",0").uid("windows"); // old
                .aggregate(new Sum()).uid("windows"); // new
    }
}

final class WindowAggregateToProcess extends WindowedJob {
    public DataStream<?> build(DataStream<String> lines) {
        return tumbling(lines, TEN)
                .aggregate(new Sum()).uid("windows"); // old
                .process(new All<>()).uid("windows"); // new
    }
}

final class WindowAccumulator extends WindowedJob {
    public DataStream<?> build(DataStream<String> lines) {
        return tumbling(lines, TEN)
                .aggregate(new Sum()).uid("windows"); // old
                .aggregate(new LongSum()).uid("windows"); // new
    }
}

final class WindowKeyedToAll extends WindowedJob {
    public DataStream<?> build(DataStream<String> lines) {
        return
                tumbling(lines, TEN).aggregate(new Sum()).uid("windows"); // old
                lines.windowAll(TumblingEventTimeWindows.of(TEN)).aggregate(new Sum()).uid("windows"); // new
    }
}
