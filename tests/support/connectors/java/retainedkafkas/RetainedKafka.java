package writing;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.flink.connector.kafka.dynamic.metadata.ClusterMetadata;
import org.apache.flink.connector.kafka.dynamic.metadata.KafkaStream;
import org.apache.flink.connector.kafka.dynamic.source.enumerator.DynamicKafkaSourceEnumState;
import org.apache.flink.connector.kafka.dynamic.source.enumerator.DynamicKafkaSourceEnumState.RetainedClusterState;
import org.apache.flink.connector.kafka.dynamic.source.enumerator.DynamicKafkaSourceEnumStateSerializer;
import org.apache.flink.connector.kafka.dynamic.source.split.DynamicKafkaSourceSplit;
import org.apache.flink.connector.kafka.dynamic.source.split.DynamicKafkaSourceSplitSerializer;
import org.apache.flink.connector.kafka.source.enumerator.AssignmentStatus;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumState;
import org.apache.flink.connector.kafka.source.enumerator.SplitAndAssignmentStatus;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplit;
import org.apache.kafka.common.TopicPartition;

/** States of Kafka's dynamic source that retains the offsets of removed clusters, by its own serializers. */
public final class RetainedKafka {
    private static final String NAME = "dynamic-kafka-source";
    private static final long UNTIL = 1_800_000_000_000L;

    public static void main(String[] args) throws Exception {
        split(args[0], new DynamicKafkaSourceSplit("eu", partition(0, 42)), null);
        split(args[0], new DynamicKafkaSourceSplit("old", partition(1, 7), UNTIL), UNTIL);
        Properties properties = new Properties();
        properties.setProperty("bootstrap.servers", "broker:9092");
        ClusterMetadata eu =
                new ClusterMetadata(Set.of("orders"), properties, OffsetsInitializer.timestamp(1700000000000L), null);
        Map<String, Object> cluster = new LinkedHashMap<>();
        cluster.put("topics", List.of("orders"));
        cluster.put("bootstrap_servers", "broker:9092");
        Map<String, Object> starting = new LinkedHashMap<>();
        starting.put("$class", OffsetsInitializer.timestamp(0).getClass().getName());
        starting.put("fields", Map.of("startingTimestamp", 1700000000000L));
        cluster.put("starting", starting);
        cluster.put("stopping", null);
        Map<String, Object> expected = new LinkedHashMap<>();
        expected.put("splits", List.of(List.of("eu-orders-0", "assigned"), List.of("old-orders-1", "unassigned")));
        expected.put("streams", Map.of("shop", Map.of("eu", cluster)));
        Map<String, Object> old = new LinkedHashMap<>();
        old.put("until_ms", UNTIL);
        old.put("initial_discovery_finished", false);
        expected.put("retained", Map.of("old", old));
        DynamicKafkaSourceEnumStateSerializer serializer = new DynamicKafkaSourceEnumStateSerializer();
        DynamicKafkaSourceEnumState state = new DynamicKafkaSourceEnumState(
                Set.of(new KafkaStream("shop", Collections.singletonMap("eu", eu))),
                Map.of("eu", kafka(partition(0, 42), AssignmentStatus.values()[0], true)),
                Map.of("old", new RetainedClusterState(
                        kafka(partition(1, 7), AssignmentStatus.values()[1], false), UNTIL)));
        Written.print(NAME, args[0], "enumerator", serializer.getVersion(), serializer.serialize(state), expected);
    }

    private static void split(String release, DynamicKafkaSourceSplit split, Long until) throws Exception {
        Map<String, Object> expected = new LinkedHashMap<>();
        expected.put("split_id", split.splitId());
        expected.put("cluster", split.getKafkaClusterId());
        expected.put("source", split.getKafkaClusterId() + "/orders");
        expected.put("position", String.valueOf(split.getStartingOffset()));
        expected.put("retained_until_ms", until);
        DynamicKafkaSourceSplitSerializer serializer = new DynamicKafkaSourceSplitSerializer();
        Written.print(NAME, release, "split", serializer.getVersion(), serializer.serialize(split), expected);
    }

    private static KafkaPartitionSplit partition(int number, long offset) {
        return new KafkaPartitionSplit(new TopicPartition("orders", number), offset);
    }

    private static KafkaSourceEnumState kafka(KafkaPartitionSplit split, AssignmentStatus status, boolean finished) {
        return new KafkaSourceEnumState(Set.of(new SplitAndAssignmentStatus(split, status)), finished);
    }
}
