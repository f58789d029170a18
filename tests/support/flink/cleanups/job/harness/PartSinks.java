package harness;

import org.apache.flink.streaming.api.datastream.DataStream;

/** Two file sinks, one of which ends its parts at checkpoints. */
final class PartSinks {
    private PartSinks() {}

    static void add(DataStream<Long> numbers, String folder) throws Exception {
        numbers.rebalance().sinkTo(WriteAheadJob.files(folder + "/open", false)).uid("open");
        numbers.rebalance().sinkTo(WriteAheadJob.files(folder + "/rolled", true)).uid("rolled");
    }
}
