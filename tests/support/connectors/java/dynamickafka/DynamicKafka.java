package writing;

import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.flink.connector.kafka.dynamic.metadata.ClusterMetadata;
import org.apache.flink.connector.kafka.dynamic.metadata.KafkaStream;
import org.apache.flink.connector.kafka.dynamic.source.enumerator.DynamicKafkaSourceEnumState;
import org.apache.flink.connector.kafka.dynamic.source.enumerator.DynamicKafkaSourceEnumStateSerializer;
import org.apache.flink.connector.kafka.dynamic.source.split.DynamicKafkaSourceSplit;
import org.apache.flink.connector.kafka.dynamic.source.split.DynamicKafkaSourceSplitSerializer;
import org.apache.flink.connector.kafka.source.enumerator.AssignmentStatus;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumState;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplit;
import org.apache.kafka.common.TopicPartition;

/** States of Kafka's dynamic source, by its own serializers. */
public final class DynamicKafka {
    public static void main(String[] args) throws Exception {
        String release = args[0].equals("kafka-1.20.5") ? "3.4.0" : args[0].replace("kafka-", "");
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
            Written.print("dynamic-kafka-source", release, "split", splits.getVersion(), splits.serialize(all[i]), expected);
        }
        Properties properties = new Properties();
        properties.setProperty("bootstrap.servers", "broker:9092");
        DynamicKafkaSourceEnumStateSerializer states = new DynamicKafkaSourceEnumStateSerializer();
        ClusterMetadata metadata = new ClusterMetadata(Collections.singleton("orders"), properties);
        Map<String, Object> cluster = new LinkedHashMap<>();
        cluster.put("topics", Collections.singletonList("orders"));
        cluster.put("bootstrap_servers", "broker:9092");
        if (states.getVersion() > 1) {
            metadata = ClusterMetadata.class.getConstructor(Set.class, Properties.class, OffsetsInitializer.class, OffsetsInitializer.class)
                    .newInstance(Collections.singleton("orders"), properties, OffsetsInitializer.timestamp(1700000000000L), null);
            Map<String, Object> starting = new LinkedHashMap<>();
            starting.put("$class", OffsetsInitializer.timestamp(0).getClass().getName());
            starting.put("fields", Collections.singletonMap("startingTimestamp", 1700000000000L));
            cluster.put("starting", starting);
            cluster.put("stopping", null);
        }
        KafkaStream stream = new KafkaStream("shop", Collections.singletonMap("eu", metadata));
        Map<String, Object> expected = new LinkedHashMap<>();
        expected.put("splits", Arrays.asList(Arrays.asList("eu-orders-0", "assigned"), Arrays.asList("eu-orders-5", "unassigned")));
        expected.put("streams", Collections.singletonMap("shop", Collections.singletonMap("eu", cluster)));
        Written.print("dynamic-kafka-source", release, "enumerator", states.getVersion(), states.serialize(
                new DynamicKafkaSourceEnumState(Collections.singleton(stream), Collections.singletonMap("eu", kafka()))), expected);
    }

    /** The state of Kafka's enumerator: partitions with their status or, in newer releases, splits with their status. */
    private static KafkaSourceEnumState kafka() throws Exception {
        String folder = "org.apache.flink.connector.kafka.source.enumerator.";
        Set<Object> all = new LinkedHashSet<>();
        for (int number : new int[] {0, 5}) {
            TopicPartition partition = new TopicPartition("orders", number);
            AssignmentStatus status = number == 0 ? AssignmentStatus.ASSIGNED : unassigned();
            try {
                all.add(Class.forName(folder + "TopicPartitionAndAssignmentStatus")
                        .getConstructor(TopicPartition.class, AssignmentStatus.class).newInstance(partition, status));
            } catch (ClassNotFoundException e) {
                all.add(Class.forName(folder + "SplitAndAssignmentStatus")
                        .getConstructor(KafkaPartitionSplit.class, AssignmentStatus.class)
                        .newInstance(new KafkaPartitionSplit(partition, 7), status));
            }
        }
        return KafkaSourceEnumState.class.getConstructor(Set.class, boolean.class).newInstance(all, true);
    }

    /** The second status, which releases name differently. */
    private static AssignmentStatus unassigned() {
        return AssignmentStatus.values()[1];
    }
}
