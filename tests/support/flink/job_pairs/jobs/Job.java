package jobs;

import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.KeyedStream;

/** A job of which the sources of both versions are in one file: lines with {@code // old} and {@code // new} are those of one of them. */
public abstract class Job {
    public abstract DataStream<?> build(DataStream<String> lines);

    static KeyedStream<String, String> keyed(DataStream<String> lines) {
        return lines.keyBy(line -> line.split(",")[0]);
    }

    static int number(String line) {
        return Integer.parseInt(line.split(",")[1]);
    }
}
