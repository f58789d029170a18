package shop;

import java.time.Instant;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/** Reminds customers of unpaid orders at nine, after each seven days. No payment comes after a timer that it would have removed. */
final class Reminders extends KeyedProcessFunction<String, Event, String> {
    private static final int PATIENCE_DAYS = 7;
    private static final int HOUR = 9;

    private transient MapState<String, LocalDate> due;
    private transient ValueState<Integer> sent;

    @Override
    public void open(OpenContext context) {
        due = getRuntimeContext().getMapState(new MapStateDescriptor<>("due", Types.STRING, Types.LOCAL_DATE));
        sent = getRuntimeContext().getState(new ValueStateDescriptor<>("sent", Types.INT));
    }

    @Override
    public void processElement(Event event, Context context, Collector<String> out) throws Exception {
        if (event.kind.equals("order")) {
            remind(event.rest[0], context.timestamp(), context);
            if (sent.value() == null) {
                sent.update(0);
            }
        } else if (event.kind.equals("paid")) {
            LocalDate day = due.get(event.rest[0]);
            due.remove(event.rest[0]);
            if (dueOn(day).isEmpty()) {
                context.timerService().deleteEventTimeTimer(timeOf(day));
            }
        }
    }

    @Override
    public void onTimer(long timestamp, OnTimerContext context, Collector<String> out) throws Exception {
        for (String order : dueOn(Instant.ofEpochMilli(timestamp).atZone(ZoneOffset.UTC).toLocalDate())) {
            out.collect(context.getCurrentKey() + ", please pay order " + order);
            sent.update(sent.value() + 1);
            remind(order, timestamp, context);
        }
    }

    private List<String> dueOn(LocalDate day) throws Exception {
        List<String> found = new ArrayList<>();
        for (Map.Entry<String, LocalDate> order : due.entries()) {
            if (order.getValue().equals(day)) {
                found.add(order.getKey());
            }
        }
        return found;
    }

    private void remind(String order, long after, Context context) throws Exception {
        LocalDate day = Instant.ofEpochMilli(after).atZone(ZoneOffset.UTC).toLocalDate().plusDays(PATIENCE_DAYS);
        due.put(order, day);
        context.timerService().registerEventTimeTimer(timeOf(day));
    }

    private static long timeOf(LocalDate day) {
        return day.atTime(HOUR, 0).toInstant(ZoneOffset.UTC).toEpochMilli();
    }
}
