package jobs;

import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * Counts numbers by key. The arguments are the job's name, what it does (run, finish, fail, decline), and its options as KEY=VALUE. The
 * option jobs.keys is the number of keys.
 */
public final class CountingJob {
    private CountingJob() {}

    public static void main(String[] args) throws Exception {
        Configuration conf = new Configuration();
        for (int i = 2; i < args.length; i++) {
            int equals = args[i].indexOf('=');
            conf.setString(args[i].substring(0, equals), args[i].substring(equals + 1));
        }
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment(conf);
        env.setParallelism(1);
        env.setMaxParallelism(16);
        long numbers = args[1].equals("finish") ? 100 : Long.MAX_VALUE / 2;
        long keys = Long.parseLong(conf.toMap().getOrDefault("jobs.keys", "500"));
        env.fromSequence(0, numbers).uid("numbers").keyBy(new Key(keys)).map(new Count(args[1], keys)).returns(Types.LONG).uid("counts").name("Counts")
                .filter(value -> false);
        env.execute(args[0]);
    }

    /** Spreads numbers over keys. */
    static final class Key implements KeySelector<Long, Long> {
        private final long keys;

        Key(long keys) {
            this.keys = keys;
        }

        @Override
        public Long getKey(Long value) {
            return value % keys;
        }
    }

    /** Counts the numbers of its key. */
    static final class Count extends RichMapFunction<Long, Long> implements CheckpointedFunction {
        private final String mode;
        private final long keys;

        Count(String mode, long keys) {
            this.mode = mode;
            this.keys = keys;
        }

        @Override
        public Long map(Long value) throws Exception {
            if (mode.equals("fail") && value == 100) {
                throw new IllegalStateException("this job fails on purpose");
            }
            ValueState<Long> count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.LONG));
            count.update(count.value() == null ? 1 : count.value() + 1);
            if (value % 20 == 0 && value >= keys) { // the first number of each key at once
                Thread.sleep(1);
            }
            return value;
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) {
            if (mode.equals("decline")) {
                throw new IllegalStateException("this checkpoint fails on purpose");
            }
        }

        @Override
        public void initializeState(FunctionInitializationContext context) {}
    }
}
