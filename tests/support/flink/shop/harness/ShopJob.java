package harness;

import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import shop.Shop;

/** Runs the job of the shop until all operators have the watermark of its last record, and takes a savepoint. */
public final class ShopJob {
    private static final int PARALLELISM = 2;
    /** By run: the watermark of each subtask of the dashboard. */
    private static final Map<String, Map<Integer, Long>> WATERMARKS = new ConcurrentHashMap<>();

    private ShopJob() {}

    static final class Dashboard implements Sink<String> {
        private final String run;

        Dashboard(String run) {
            this.run = run;
        }

        @Override
        public SinkWriter<String> createWriter(WriterInitContext context) {
            int subtask = context.getTaskInfo().getIndexOfThisSubtask();
            return new SinkWriter<String>() {
                @Override
                public void write(String text, Context context) {}

                @Override
                public void writeWatermark(Watermark watermark) {
                    WATERMARKS.get(run).put(subtask, watermark.getTimestamp());
                }

                @Override
                public void flush(boolean end) {}

                @Override
                public void close() {}
            };
        }
    }

    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        String run = UUID.randomUUID().toString();
        Map<Integer, Long> watermarks = new ConcurrentHashMap<>();
        WATERMARKS.put(run, watermarks);
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(PARALLELISM);
        env.setMaxParallelism(128);
        DeliveryGuarantee guarantee = DeliveryGuarantee.valueOf(request.get("guarantee").asText());
        Shop.define(env, request.get("servers").asText(), guarantee, new Dashboard(run));
        JobID job = cluster.submit(env, request.path("snapshot").asText(null), false);
        try {
            // The watermark stays a millisecond behind the last record.
            long end = request.get("end").asLong() - 1;
            cluster.await(job, "the last watermark", () -> watermarks.size() == PARALLELISM
                    && watermarks.values().stream().allMatch(watermark -> watermark >= end));
            return Map.of("savepoint", cluster.savepoint(job, request.get("savepoint").asText(), "CANONICAL"));
        } finally {
            cluster.cancel(job);
            WATERMARKS.remove(run);
        }
    }
}
