package shop;

import java.time.Instant;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/** Keeps the orders of each customer until they are sent, and what the customer has paid. */
final class Orders extends KeyedProcessFunction<String, Event, Payment> {
    private transient ValueState<Customer> customer;
    private transient ListState<Order> open;
    private transient MapState<String, Long> spent;
    private transient ValueState<Long> total;
    private transient ValueState<Integer> points;

    @Override
    public void open(OpenContext context) {
        customer = getRuntimeContext().getState(new ValueStateDescriptor<>("customer", Customer.class));
        open = getRuntimeContext().getListState(new ListStateDescriptor<>("open", Order.class));
        spent = getRuntimeContext().getMapState(new MapStateDescriptor<>("spent", Types.STRING, Types.LONG));
        total = getRuntimeContext().getState(new ValueStateDescriptor<>("total_cents", Types.LONG));
        points = getRuntimeContext().getState(new ValueStateDescriptor<>("points", Types.INT));
    }

    @Override
    public void processElement(Event event, Context context, Collector<Payment> out) throws Exception {
        switch (event.kind) {
            case "joined":
                Customer joined = new Customer();
                joined.email = event.rest[0];
                joined.city = event.rest[1];
                joined.since = LocalDate.parse(event.rest[2]);
                customer.update(joined);
                total.update(0L);
                points.update(0);
                break;
            case "order":
                Order order = new Order();
                order.id = event.rest[0];
                order.product = event.rest[1];
                order.quantity = Integer.parseInt(event.rest[2]);
                order.cents = Long.parseLong(event.rest[3]);
                order.placed = Instant.ofEpochMilli(context.timestamp()).atZone(ZoneOffset.UTC).toLocalDate();
                order.status = Status.UNPAID;
                open.add(order);
                break;
            case "paid":
                List<Order> orders = new ArrayList<>();
                for (Order each : open.get()) {
                    if (each.id.equals(event.rest[0])) {
                        each.status = Status.PAID;
                        pay(each, context.getCurrentKey(), out);
                    }
                    orders.add(each);
                }
                open.update(orders);
                break;
            default:
                List<Order> left = new ArrayList<>();
                for (Order each : open.get()) {
                    if (!each.id.equals(event.rest[0])) {
                        left.add(each);
                    }
                }
                open.update(left);
        }
    }

    private void pay(Order order, String customer, Collector<Payment> out) throws Exception {
        Long before = spent.get(order.product);
        spent.put(order.product, (before == null ? 0 : before) + order.cents);
        total.update(total.value() + order.cents);
        points.update((int) (total.value() / 100));
        Payment payment = new Payment();
        payment.customer = customer;
        payment.order = order.id;
        payment.product = order.product;
        payment.quantity = order.quantity;
        payment.cents = order.cents;
        out.collect(payment);
    }
}
