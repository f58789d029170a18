package jobs;

import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** Keeps orders of a hundred customers, with fields whose serializers Flink 2 changed: a list, and a class that Kryo writes. */
public final class OrdersJob {
    private OrdersJob() {}

    public static void main(String[] args) throws Exception {
        Configuration conf = new Configuration();
        for (int i = 1; i < args.length; i++) {
            int equals = args[i].indexOf('=');
            conf.setString(args[i].substring(0, equals), args[i].substring(equals + 1));
        }
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment(conf);
        env.setParallelism(1);
        env.setMaxParallelism(16);
        env.fromSequence(0, Long.MAX_VALUE / 2).uid("numbers").keyBy(value -> value % 100, Types.LONG)
                .map(new Add()).returns(Types.LONG).uid("orders").name("Orders").filter(value -> false);
        env.execute(args[0]);
    }

    /** The orders of a customer. */
    public static class Order {
        public UUID ticket;
        public List<String> items;
        public long total;
    }

    /** Adds to the order of a customer. */
    static final class Add extends RichMapFunction<Long, Long> {
        @Override
        public Long map(Long value) throws Exception {
            ValueState<Order> state = getRuntimeContext().getState(new ValueStateDescriptor<>("order", Order.class));
            Order order = state.value();
            if (order == null) {
                order = new Order();
                order.ticket = new UUID(value, -value);
                order.items = new ArrayList<>();
                order.items.add("item-" + value);
            }
            order.total++;
            state.update(order);
            if (value % 20 == 0 && value >= 100) { // the first number of each key at once
                Thread.sleep(1);
            }
            return value;
        }
    }
}
