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
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Copies a topic of a real Kafka to another one in transactions, and takes a savepoint after a number of records. */
public final class KafkaJob {
    private KafkaJob() {}

    /** Counts records on the board. */
    static final class Seen implements MapFunction<String, String> {
        private final String run;

        Seen(String run) {
            this.run = run;
        }

        @Override
        public String map(String value) {
            Board.of(run).records.add(value);
            return value;
        }
    }

    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        String run = UUID.randomUUID().toString();
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(2);
        String servers = request.get("servers").asText();
        Properties properties = new Properties();
        properties.setProperty("transaction.timeout.ms", "3600000");
        // The broker answers late on a busy machine.
        properties.setProperty("max.block.ms", "600000");
        properties.setProperty("delivery.timeout.ms", "600000");
        KafkaSource<String> source = KafkaSource.<String>builder()
                .setBootstrapServers(servers).setTopics(request.get("in").asText())
                .setGroupId(run).setStartingOffsets(OffsetsInitializer.earliest())
                .setValueOnlyDeserializer(new SimpleStringSchema()).build();
        KafkaSink<String> sink = KafkaSink.<String>builder()
                .setBootstrapServers(servers).setKafkaProducerConfig(properties)
                .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
                .setTransactionalIdPrefix(request.get("prefix").asText())
                .setRecordSerializer(KafkaRecordSerializationSchema.<String>builder()
                        .setTopic(request.get("out").asText()).setValueSerializationSchema(new SimpleStringSchema())
                        .build())
                .build();
        env.fromSource(source, WatermarkStrategy.noWatermarks(), "source").uid(request.get("uid").asText())
                .map(new Seen(run)).returns(Types.STRING).uid("seen").sinkTo(sink).uid("out");
        JobID job = cluster.submit(env, request.path("snapshot").asText(null), false);
        Map<String, Object> out = new HashMap<>();
        try {
            int wanted = request.get("wanted").asInt();
            cluster.await(job, "records", () -> Board.of(run).records.size() >= wanted);
            // A savepoint prepares transactions, and does not commit them; a checkpoint does both.
            if (request.hasNonNull("savepoint")) {
                out.put("savepoint", cluster.savepoint(job, request.get("savepoint").asText(), "CANONICAL"));
            } else {
                cluster.checkpoint(job);
                // The committer learns of the checkpoint later. An open transaction hides what follows it.
                TopicPartition written = new TopicPartition(request.get("out").asText(), 0);
                try (KafkaConsumer<byte[], byte[]> committed = consumer(servers, "read_committed");
                        KafkaConsumer<byte[], byte[]> all = consumer(servers, "read_uncommitted")) {
                    cluster.await(job, "commits", () -> end(committed, written) == end(all, written));
                }
            }
        } finally {
            cluster.cancel(job);
            Board.forget(run);
        }
        return out;
    }

    private static KafkaConsumer<byte[], byte[]> consumer(String servers, String isolation) {
        Properties properties = new Properties();
        properties.setProperty("bootstrap.servers", servers);
        properties.setProperty("isolation.level", isolation);
        properties.setProperty("default.api.timeout.ms", "600000");
        return new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static long end(KafkaConsumer<?, ?> consumer, TopicPartition partition) {
        return consumer.endOffsets(Collections.singleton(partition)).get(partition);
    }
}
