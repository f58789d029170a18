package shop;

import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;

/** Numbers the invoices, and keeps those that wait to be printed. */
final class Invoicing extends RichMapFunction<Payment, String> implements CheckpointedFunction {
    private static final int PAGE = 4;

    private transient ListState<Series> series;
    private transient ListState<String> unprinted;
    private transient Series mine;
    private transient List<String> waiting;

    @Override
    public void initializeState(FunctionInitializationContext context) throws Exception {
        series = context.getOperatorStateStore().getUnionListState(new ListStateDescriptor<>("series", Series.class));
        unprinted = context.getOperatorStateStore().getListState(new ListStateDescriptor<>("unprinted", Types.STRING));
        mine = new Series();
        mine.prefix = String.valueOf((char) ('A' + getRuntimeContext().getTaskInfo().getIndexOfThisSubtask()));
        mine.next = 1;
        for (Series each : series.get()) {
            if (each.prefix.equals(mine.prefix)) {
                mine = each;
            }
        }
        waiting = new ArrayList<>();
        unprinted.get().forEach(waiting::add);
    }

    @Override
    public void snapshotState(FunctionSnapshotContext context) throws Exception {
        series.update(List.of(mine));
        unprinted.update(waiting);
    }

    @Override
    public String map(Payment payment) {
        String number = mine.prefix + "-" + mine.next++;
        waiting.add(number);
        if (waiting.size() == PAGE) {
            waiting.clear();
        }
        return number + " " + payment.customer + " " + payment.order + " " + payment.cents;
    }
}
