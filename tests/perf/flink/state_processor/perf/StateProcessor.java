package perf;

import java.lang.management.ManagementFactory;
import java.util.HashMap;
import java.util.Map;
import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.api.common.functions.RuntimeContext;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.state.api.OperatorIdentifier;
import org.apache.flink.state.api.OperatorTransformation;
import org.apache.flink.state.api.SavepointReader;
import org.apache.flink.state.api.SavepointWriter;
import org.apache.flink.state.api.functions.KeyedStateBootstrapFunction;
import org.apache.flink.state.api.functions.KeyedStateReaderFunction;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/**
 * The State Processor API at the same work, some times in one JVM: prints the seconds of each time.
 *
 * <pre>
 *   StateProcessor bootstrap N OUT TIMES
 *   StateProcessor read N SAVEPOINT TIMES       a savepoint that bootstrap has written
 *   StateProcessor rescale N SAVEPOINT TIMES    read, and written with another maximum parallelism
 * </pre>
 *
 * Accounts as {@code tests/perf/write_bench.py} has them: a long, a string, a double, a map of two. Two tasks, on the heap.
 */
public final class StateProcessor {
    static final OperatorIdentifier ACCOUNTS = OperatorIdentifier.forUid("accounts");

    /** One key and its states. */
    public static class Account {
        public long id;
        public long count;
        public String name;
        public double score;
        public Map<String, Double> balances;

        static Account of(long id) {
            Account a = new Account();
            a.id = id;
            a.count = 7 * id + 3;
            a.name = "user-" + id;
            a.score = id / 7.0;
            a.balances = new HashMap<>(4);
            a.balances.put("eur", id * 0.25);
            a.balances.put("usd", id * -0.5);
            return a;
        }
    }

    /** The states of a key, where it is bootstrapped and where it is read. */
    static final class States {
        final ValueState<Long> count;
        final ValueState<String> name;
        final ValueState<Double> score;
        final MapState<String, Double> balances;

        States(RuntimeContext context) {
            count = context.getState(new ValueStateDescriptor<>("count", Types.LONG));
            name = context.getState(new ValueStateDescriptor<>("name", Types.STRING));
            score = context.getState(new ValueStateDescriptor<>("score", Types.DOUBLE));
            balances = context.getMapState(new MapStateDescriptor<>("balances", Types.STRING, Types.DOUBLE));
        }
    }

    /** Writes the states of a key. */
    public static class Writer extends KeyedStateBootstrapFunction<Long, Account> {
        transient States states;

        @Override
        public void processElement(Account a, Context context) throws Exception {
            if (states == null) {
                states = new States(getRuntimeContext());
            }
            states.count.update(a.count);
            states.name.update(a.name);
            states.score.update(a.score);
            states.balances.putAll(a.balances);
        }
    }

    /** Reads the states of a key. */
    public static class Reader extends KeyedStateReaderFunction<Long, Account> {
        transient States states;

        @Override
        public void open(org.apache.flink.api.common.functions.OpenContext context) {
            states = new States(getRuntimeContext());
        }

        @Override
        public void readKey(Long key, Context context, Collector<Account> out) throws Exception {
            Account a = new Account();
            a.id = key;
            a.count = states.count.value();
            a.name = states.name.value();
            a.score = states.score.value();
            a.balances = new HashMap<>(4);
            for (Map.Entry<String, Double> e : states.balances.entries()) {
                a.balances.put(e.getKey(), e.getValue());
            }
            out.collect(a);
        }
    }

    static void write(StreamExecutionEnvironment env, DataStream<Account> accounts, int maxParallelism, String out) {
        SavepointWriter.newSavepoint(env, maxParallelism)
                .withOperator(ACCOUNTS, OperatorTransformation.bootstrapWith(accounts).keyBy(a -> a.id, Types.LONG).transform(new Writer()))
                .write(out);
    }

    public static void main(String[] args) throws Exception {
        long n = Long.parseLong(args[1]);
        int times = Integer.parseInt(args[3]);
        var process = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        for (int i = 0; i < times; i++) {
            long start = System.nanoTime();
            long before = process.getProcessCpuTime();
            Configuration conf = new Configuration();
            conf.setString("rest.port", "0");
            conf.setString("io.tmp.dirs", System.getProperty("java.io.tmpdir"));
            StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(2, conf);
            env.setRuntimeMode(RuntimeExecutionMode.BATCH);
            if (args[0].equals("bootstrap")) {
                DataStream<Account> made = env.fromSequence(0, n - 1).map(Account::of).returns(Types.POJO(Account.class));
                write(env, made, 128, args[2] + "-" + i);
            } else {
                DataStream<Account> read = SavepointReader.read(env, args[2])
                        .readKeyedState(ACCOUNTS, new Reader(), Types.LONG, Types.POJO(Account.class));
                if (args[0].equals("rescale")) {
                    write(env, read, 300, args[2] + "-rescaled-" + i);
                } else {
                    read.sinkTo(new DiscardingSink<>());
                }
            }
            env.execute();
            double seconds = (System.nanoTime() - start) / 1e9;
            System.out.printf("total=%.3f s cpu=%.3f s%n", seconds, (process.getProcessCpuTime() - before) / 1e9);
        }
    }

    private StateProcessor() {}
}
