package harness;

import java.util.Map;
import org.apache.doris.flink.cfg.DorisExecutionOptions;
import org.apache.doris.flink.cfg.DorisOptions;
import org.apache.doris.flink.sink.DorisSink;
import org.apache.doris.flink.sink.writer.serializer.SimpleStringSerializer;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;

/** Writes numbers to Doris. */
public final class DorisJob {
    private DorisJob() {}

    static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        String server = request.get("server").asText();
        DorisSink<String> sink = DorisSink.<String>builder()
                .setDorisOptions(DorisOptions.builder().setFenodes(server).setBenodes(server)
                        .setTableIdentifier("shop.out").setUsername("flink").setPassword("").build())
                .setDorisExecutionOptions(DorisExecutionOptions.builder().setLabelPrefix("numbers").enable2PC().build())
                .setSerializer(new SimpleStringSerializer())
                .build();
        return StreamLoadJob.run(cluster, request, sink);
    }
}
