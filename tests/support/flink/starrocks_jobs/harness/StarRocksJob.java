package harness;

import com.starrocks.connector.flink.table.data.DefaultStarRocksRowData;
import com.starrocks.connector.flink.table.data.StarRocksRowData;
import com.starrocks.connector.flink.table.sink.StarRocksSinkOptions;
import com.starrocks.connector.flink.table.sink.v2.RecordSerializationSchema;
import com.starrocks.connector.flink.table.sink.v2.StarRocksSink;
import com.starrocks.connector.flink.table.sink.v2.StarRocksSinkContext;
import com.starrocks.data.load.stream.StreamLoadDataFormat;
import com.starrocks.data.load.stream.properties.StreamLoadProperties;
import com.starrocks.data.load.stream.properties.StreamLoadTableProperties;
import java.util.Map;
import org.apache.flink.api.common.serialization.SerializationSchema;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;

/** Writes numbers to StarRocks. With labels that are generated for exactly-once, its writers have state. */
public final class StarRocksJob {
    private StarRocksJob() {}

    /** Rows of one column. */
    static final class Rows implements RecordSerializationSchema<String> {
        @Override
        public void open(SerializationSchema.InitializationContext context, StarRocksSinkContext sinkContext) {}

        @Override
        public StarRocksRowData serialize(String row) {
            return new DefaultStarRocksRowData(null, "shop", "out", row);
        }

        @Override
        public void close() {}
    }

    static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        String server = request.get("server").asText();
        StarRocksSinkOptions options = StarRocksSinkOptions.builder()
                .withProperty("jdbc-url", "jdbc:mysql://" + server)
                .withProperty("load-url", server)
                .withProperty("database-name", "shop")
                .withProperty("table-name", "out")
                .withProperty("username", "flink")
                .withProperty("password", "")
                .withProperty("sink.semantic", "exactly-once")
                .withProperty("sink.label-prefix", "numbers")
                .withProperty("sink.exactly-once.enable-label-gen", request.path("labels").asText("false"))
                .withProperty("sink.exactly-once.enable-abort-lingering-txn", "false")
                .build();
        StreamLoadTableProperties table = StreamLoadTableProperties.builder()
                .database("shop").table("out").streamLoadDataFormat(new StreamLoadDataFormat.CSVFormat()).build();
        StreamLoadProperties loads = StreamLoadProperties.builder()
                .loadUrls("http://" + server).username("flink").password("").version("3.3.0")
                .labelPrefix("numbers").defaultTableProperties(table).enableTransaction().build();
        return StreamLoadJob.run(cluster, request, new StarRocksSink<>(options, new Rows(), loads));
    }
}
