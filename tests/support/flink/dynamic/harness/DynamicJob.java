package harness;

import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.UUID;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.connector.kafka.dynamic.metadata.SingleClusterTopicMetadataService;
import org.apache.flink.connector.kafka.dynamic.source.DynamicKafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** Reads a topic of a real Kafka with the dynamic source, and takes a savepoint after a number of records. */
public final class DynamicJob {
    private static final int RECORDS = 40;

    private DynamicJob() {}

    /** Counts records on the board. */
    static final class Seen implements MapFunction<String, Long> {
        private final String run;

        Seen(String run) {
            this.run = run;
        }

        @Override
        public Long map(String value) {
            Board.of(run).records.add(value);
            return 0L;
        }
    }

    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        String run = UUID.randomUUID().toString();
        String topic = request.get("topic").asText();
        Properties properties = new Properties();
        properties.setProperty("bootstrap.servers", request.get("servers").asText());
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer())) {
            for (int n = 0; n < RECORDS; n++) {
                producer.send(new ProducerRecord<>(topic, n % 4, null, String.valueOf(n)));
            }
        }
        DynamicKafkaSource<String> source = DynamicKafkaSource.<String>builder()
                .setKafkaMetadataService(new SingleClusterTopicMetadataService("cluster", properties))
                .setStreamIds(Collections.singleton(topic)).setGroupId(run)
                .setStartingOffsets(OffsetsInitializer.earliest())
                .setDeserializer(KafkaRecordDeserializationSchema.valueOnly(new SimpleStringSchema()))
                .setProperties(properties).build();
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(2);
        Cluster.discard(env.fromSource(source, WatermarkStrategy.noWatermarks(), "source").uid("dynamic")
                .map(new Seen(run)).returns(Types.LONG).uid("seen"));
        JobID job = cluster.submit(env, null, false);
        Map<String, Object> out = new HashMap<>();
        try {
            cluster.await(job, "records", () -> Board.of(run).records.size() >= RECORDS);
            out.put("savepoint", cluster.savepoint(job, request.get("savepoint").asText(), "CANONICAL"));
            return out;
        } finally {
            cluster.cancel(job);
            Board.forget(run);
        }
    }
}
