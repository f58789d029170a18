package shop;

import java.time.Duration;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ReducingState;
import org.apache.flink.api.common.state.ReducingStateDescriptor;
import org.apache.flink.api.common.state.StateDescriptor;
import org.apache.flink.api.common.state.StateTtlConfig;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.functions.co.KeyedBroadcastProcessFunction;
import org.apache.flink.util.Collector;

/** Keeps what each customer looked at and wants to buy, for a time, and the prices, which all subtasks need. */
final class Baskets extends KeyedBroadcastProcessFunction<String, Event, Event, String> {
    static final MapStateDescriptor<String, Long> PRICES = new MapStateDescriptor<>("prices", Types.STRING, Types.LONG);

    private transient MapState<String, Integer> basket;
    private transient ListState<String> viewed;
    private transient ValueState<String> coupon;
    private transient ReducingState<Long> clicks;

    @Override
    public void open(OpenContext context) {
        basket = getRuntimeContext().getMapState(kept(30, new MapStateDescriptor<>("basket", Types.STRING, Types.INT)));
        viewed = getRuntimeContext().getListState(kept(7, new ListStateDescriptor<>("viewed", Types.STRING)));
        coupon = getRuntimeContext().getState(kept(14, new ValueStateDescriptor<>("coupon", Types.STRING)));
        clicks = getRuntimeContext()
                .getReducingState(new ReducingStateDescriptor<>("clicks", Long::sum, Types.LONG));
    }

    private static <D extends StateDescriptor<?, ?>> D kept(int days, D descriptor) {
        descriptor.enableTimeToLive(StateTtlConfig.newBuilder(Duration.ofDays(days)).build());
        return descriptor;
    }

    @Override
    public void processElement(Event event, ReadOnlyContext context, Collector<String> out) throws Exception {
        Clock.set(context.timestamp());
        clicks.add(1L);
        switch (event.kind) {
            case "view":
                viewed.add(event.rest[0]);
                break;
            case "put":
                basket.put(event.rest[0], Integer.parseInt(event.rest[1]));
                break;
            case "coupon":
                coupon.update(event.rest[0]);
                break;
            default:
                basket.remove(event.rest[0]);
        }
    }

    @Override
    public void processBroadcastElement(Event event, Context context, Collector<String> out) throws Exception {
        context.getBroadcastState(PRICES).put(event.name, Long.parseLong(event.rest[0]));
    }
}
