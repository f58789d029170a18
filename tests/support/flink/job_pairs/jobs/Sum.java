package jobs.others;

import org.apache.flink.api.common.functions.AggregateFunction;

/** A function with the name of another one. */
public final class Sum implements AggregateFunction<String, Long, String> {
    public Long createAccumulator() {
        return 0L;
    }

    public Long add(String line, Long sum) {
        return sum + Integer.parseInt(line.split(",")[1]);
    }

    public String getResult(Long sum) {
        return "sum=" + sum;
    }

    public Long merge(Long a, Long b) {
        return a + b;
    }
}
