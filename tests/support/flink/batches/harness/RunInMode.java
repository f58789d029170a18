package harness;

import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** Prints whether a bounded job runs in a runtime mode with the path of a snapshot that does not exist, or why it fails. */
public final class RunInMode {
    public static void main(String[] args) throws Exception {
        Configuration config = new Configuration();
        config.setString("execution.runtime-mode", args[0]);
        for (String option : new String[] {"execution.savepoint.path", "execution.state-recovery.path"}) {
            config.setString(option, args[1]);
        }
        var environment = StreamExecutionEnvironment.createLocalEnvironment(1, config);
        environment.fromSequence(1, 5).map(x -> x).returns(Types.LONG).print();
        try {
            environment.execute();
            System.out.println("ran");
        } catch (Exception e) {
            Throwable cause = e;
            while (cause.getCause() != null) {
                cause = cause.getCause();
            }
            System.out.println(cause);
        }
    }
}
