package harness;

import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.datastream.DataStream;

/** A sink on {@code GenericWriteAheadSink}. */
final class AheadSinks {
    private AheadSinks() {}

    static void add(DataStream<Long> numbers, String folder) throws Exception {
        numbers.rebalance().transform("ahead", Types.LONG, new WriteAheadJob.Numbers(folder + "/ahead")).uid("ahead");
    }
}
