package harness;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.hudi.client.WriteStatus;
import org.apache.hudi.common.model.HoodieDeltaWriteStat;
import org.apache.hudi.common.model.HoodieWriteStat;
import org.apache.hudi.sink.event.WriteMetadataEvent;

/** Keeps the state of Hudi's writers: the files that they have written since the last commit. */
public final class HudiJob {
    private HudiJob() {}

    static final class Writer extends RichMapFunction<Long, Long> implements CheckpointedFunction {
        private transient ListState<WriteMetadataEvent> state;

        @Override
        public Long map(Long n) throws Exception {
            Thread.sleep(20);
            return n;
        }

        @Override
        public void initializeState(FunctionInitializationContext context) throws Exception {
            state = context.getOperatorStateStore().getListState(
                    new ListStateDescriptor<>("write-metadata-state", TypeInformation.of(WriteMetadataEvent.class)));
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) throws Exception {
            WriteMetadataEvent event = new WriteMetadataEvent();
            event.setTaskID(0);
            event.setInstantTime("20260102030405678");
            event.setLastBatch(true);
            event.setWriteStatuses(new ArrayList<>(List.of(written(0, new HoodieWriteStat()), logged(1))));
            state.update(List.of(event));
        }

        private static WriteStatus logged(int n) {
            HoodieDeltaWriteStat stat = new HoodieDeltaWriteStat();
            stat.setLogVersion(2);
            stat.setLogFiles(new ArrayList<>(List.of(".file-" + n + ".log.2")));
            return written(n, stat);
        }

        private static WriteStatus written(int n, HoodieWriteStat stat) {
            stat.setFileId("file-" + n);
            stat.setPath("day=größe/file-" + n + ".parquet");
            stat.setPartitionPath("day=größe");
            stat.setNumWrites(1000 + n);
            WriteStatus status = new WriteStatus(false, 0.0);
            status.setFileId("file-" + n);
            status.setPartitionPath("day=größe");
            status.setTotalRecords(1000 + n);
            status.setStat(stat);
            return status;
        }
    }

    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(1);
        env.fromSequence(0, Long.MAX_VALUE / 2).uid("numbers")
                .map(new Writer()).returns(Long.class).uid("writer")
                .sinkTo(new DiscardingSink<>()).uid("sink");
        JobID job = cluster.submit(env, null, true);
        try {
            Map<String, Object> out = new LinkedHashMap<>();
            out.put("savepoint", cluster.savepoint(job, request.get("savepoint").asText(), "CANONICAL"));
            out.put("values", List.of("day=größe/file-0.parquet 1000", "day=größe/file-1.parquet 1001"));
            return out;
        } finally {
            cluster.cancel(job);
        }
    }
}
