package writing;

import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Properties;
import org.apache.flink.connector.kafka.dynamic.metadata.ClusterMetadata;
import org.apache.flink.connector.kafka.dynamic.metadata.KafkaStream;
import org.apache.flink.connector.kafka.dynamic.source.enumerator.DynamicKafkaSourceEnumState;
import org.apache.flink.connector.kafka.dynamic.source.enumerator.DynamicKafkaSourceEnumStateSerializer;
import org.apache.flink.connector.kafka.dynamic.source.split.DynamicKafkaSourceSplit;
import org.apache.flink.connector.kafka.dynamic.source.split.DynamicKafkaSourceSplitSerializer;
import org.apache.flink.connector.kafka.source.enumerator.AssignmentStatus;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumState;
import org.apache.flink.connector.kafka.source.enumerator.TopicPartitionAndAssignmentStatus;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplit;
import org.apache.kafka.common.TopicPartition;

/** States of Kafka's dynamic source, by its own serializers. */
public final class DynamicKafka {
    private static final String RELEASE = "3.4.0";

    public static void main(String[] args) throws Exception {
        DynamicKafkaSourceSplitSerializer splits = new DynamicKafkaSourceSplitSerializer();
        DynamicKafkaSourceSplit[] all = {
            new DynamicKafkaSourceSplit("eu", new KafkaPartitionSplit(new TopicPartition("orders", 0), 42)),
            new DynamicKafkaSourceSplit("us", new KafkaPartitionSplit(new TopicPartition("orders", 1), -2, 99)),
        };
        String[][] places = {{"eu/orders", "42", null}, {"us/orders", null, "99"}};
        for (int i = 0; i < all.length; i++) {
            Map<String, Object> expected = new LinkedHashMap<>();
            expected.put("split_id", all[i].splitId());
            expected.put("cluster", all[i].getKafkaClusterId());
            expected.put("source", places[i][0]);
            expected.put("position", places[i][1]);
            expected.put("stop", places[i][2]);
            Written.print("dynamic-kafka-source", RELEASE, "split", splits.getVersion(), splits.serialize(all[i]), expected);
        }
        Properties properties = new Properties();
        properties.setProperty("bootstrap.servers", "broker:9092");
        KafkaStream stream = new KafkaStream("shop", Collections.singletonMap(
                "eu", new ClusterMetadata(Collections.singleton("orders"), properties)));
        KafkaSourceEnumState kafka = new KafkaSourceEnumState(new LinkedHashSet<>(Arrays.asList(
                new TopicPartitionAndAssignmentStatus(new TopicPartition("orders", 0), AssignmentStatus.ASSIGNED),
                new TopicPartitionAndAssignmentStatus(new TopicPartition("orders", 5), AssignmentStatus.UNASSIGNED_INITIAL))), true);
        DynamicKafkaSourceEnumStateSerializer states = new DynamicKafkaSourceEnumStateSerializer();
        Map<String, Object> expected = new LinkedHashMap<>();
        expected.put("splits", Arrays.asList(Arrays.asList("eu-orders-0", "assigned"), Arrays.asList("eu-orders-5", "unassigned")));
        Map<String, Object> cluster = new LinkedHashMap<>();
        cluster.put("topics", Collections.singletonList("orders"));
        cluster.put("bootstrap_servers", "broker:9092");
        expected.put("streams", Collections.singletonMap("shop", Collections.singletonMap("eu", cluster)));
        Written.print("dynamic-kafka-source", RELEASE, "enumerator", states.getVersion(), states.serialize(
                new DynamicKafkaSourceEnumState(Collections.singleton(stream), Collections.singletonMap("eu", kafka))), expected);
    }
}
