import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/** The job of the notebook {@code test-a-job}: each argument is an order, such as {@code Ada 2380}, and adds a point per 100 cents. */
public class Points {
    public static void main(String[] orders) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.fromData(orders)
                .uid("orders")
                .keyBy(order -> order.split(" ")[0], Types.STRING)
                .process(new Add())
                .uid("points")
                .print()
                .uid("print");
        env.execute();
    }

    static final class Add extends KeyedProcessFunction<String, String, String> {
        private transient ValueState<Integer> points;

        @Override
        public void open(OpenContext context) {
            points = getRuntimeContext().getState(new ValueStateDescriptor<>("points", Types.INT));
        }

        @Override
        public void processElement(String order, Context context, Collector<String> out) throws Exception {
            int before = points.value() == null ? 0 : points.value();
            points.update(before + Integer.parseInt(order.split(" ")[1]) / 100);
            out.collect(context.getCurrentKey() + " has " + points.value() + " points");
        }
    }
}
