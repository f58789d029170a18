package harness;

import io.delta.flink.sink.DeltaSink;
import java.util.Map;
import org.apache.flink.core.fs.Path;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.logical.BigIntType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.hadoop.conf.Configuration;

/** Writes numbers to a table of Delta with Delta's own sink. */
public final class DeltaSinkJob {
    private static final RowType ROW = RowType.of(new LogicalType[] {new BigIntType()}, new String[] {"n"});

    private DeltaSinkJob() {}

    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        return CommitJob.run(cluster, request, new CommitJob.Table() {
            @Override
            public String commits() {
                return "_delta_log";
            }

            @Override
            public void write(DataStream<Long> numbers, String folder, String uid) {
                DataStream<RowData> rows = numbers.map(n -> (RowData) GenericRowData.of(n))
                        .returns(InternalTypeInfo.of(ROW)).uid("rows");
                rows.sinkTo(DeltaSink.forRowData(new Path("file://" + folder), new Configuration(), ROW).build())
                        .uid(uid);
            }

            @Override
            public void hold(boolean held) {
                // Delta's global committer always commits.
            }
        });
    }
}
