package jobs;

import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;

/**
 * Jobs whose operators have ids by Flink's hashes of their plan. The arguments are the job's name, its plan (sql, chains, uids), and its options as
 * KEY=VALUE.
 */
public final class PlannedJobs {
    private PlannedJobs() {}

    public static void main(String[] args) throws Exception {
        Configuration conf = new Configuration();
        for (int i = 2; i < args.length; i++) {
            int equals = args[i].indexOf('=');
            conf.setString(args[i].substring(0, equals), args[i].substring(equals + 1));
        }
        conf.setString("pipeline.name", args[0]);
        if (args[1].equals("sql")) {
            sql(conf);
        } else if (args[1].equals("uids")) {
            uids(conf, args[0]);
        } else {
            chains(conf, args[0]);
        }
    }

    private static void sql(Configuration conf) {
        TableEnvironment env = TableEnvironment.create(EnvironmentSettings.newInstance().inStreamingMode().build());
        env.getConfig().getConfiguration().addAll(conf);
        env.getConfig().getConfiguration().setString("parallelism.default", "1");
        env.executeSql(
                "CREATE TABLE orders (id BIGINT, amount BIGINT, t AS PROCTIME()) WITH ('connector' = 'datagen',"
                        + " 'rows-per-second' = '50', 'fields.id.min' = '1', 'fields.id.max' = '20')");
        env.executeSql("CREATE TABLE totals (id BIGINT, total BIGINT) WITH ('connector' = 'blackhole')");
        env.executeSql("INSERT INTO totals SELECT id, SUM(amount) FROM orders GROUP BY id HAVING SUM(amount) <> 7");
    }

    /** A chain that forks, with a name that contains an arrow, and an operator with a uid in the middle. */
    private static void chains(Configuration conf, String name) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment(conf);
        env.setParallelism(1);
        env.setMaxParallelism(16);
        SingleOutputStreamOperator<Long> first =
                env.fromSequence(0, Long.MAX_VALUE / 2).name("numbers").map(PlannedJobs::slowly).returns(Types.LONG).name("a -> b");
        first.filter(value -> value % 2 == 0).name("even (2)").map(value -> value).returns(Types.LONG).name("last, even")
                .filter(value -> false).name("nowhere");
        first.filter(value -> value % 2 == 1).name("odd");
        first.keyBy(value -> value % 10).map(value -> value).returns(Types.LONG).name("keyed").uid("keyed-uid").filter(value -> false)
                .name("nothing");
        env.execute(name);
    }

    /** Operators with uids in chains: one of a chain with another parallelism, and two of one chain. */
    private static void uids(Configuration conf, String name) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment(conf);
        env.setMaxParallelism(16);
        env.fromSequence(0, Long.MAX_VALUE / 2).name("numbers").uid("numbers-uid").setParallelism(1).map(PlannedJobs::slowly).returns(Types.LONG)
                .name("slow").uid("slow-uid").setParallelism(1).keyBy(value -> value % 10).map(value -> value).returns(Types.LONG).name("keyed")
                .uid("keyed-uid").setParallelism(2).map(value -> value).returns(Types.LONG).name("one").uid("one-uid").setParallelism(2)
                .filter(value -> false).name("other").uid("other-uid").setParallelism(2);
        env.execute(name);
    }

    private static long slowly(long value) throws InterruptedException {
        Thread.sleep(1);
        return value;
    }
}
