package writing;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import org.apache.flink.connector.pulsar.sink.committer.PulsarCommittable;
import org.apache.flink.connector.pulsar.sink.committer.PulsarCommittableSerializer;
import org.apache.flink.connector.pulsar.source.enumerator.PulsarSourceEnumState;
import org.apache.flink.connector.pulsar.source.enumerator.PulsarSourceEnumStateSerializer;
import org.apache.flink.connector.pulsar.source.enumerator.cursor.StopCursor;
import org.apache.flink.connector.pulsar.source.enumerator.topic.TopicPartition;
import org.apache.flink.connector.pulsar.source.enumerator.topic.TopicRange;
import org.apache.flink.connector.pulsar.source.split.PulsarPartitionSplit;
import org.apache.flink.connector.pulsar.source.split.PulsarPartitionSplitSerializer;
import org.apache.pulsar.client.api.transaction.TxnID;
import org.apache.pulsar.client.impl.BatchMessageIdImpl;
import org.apache.pulsar.client.impl.MessageIdImpl;

/** States of Pulsar's source and sink, by their own serializers. */
public final class Pulsar {
    private static final String RELEASE = "4.1.0";

    public static void main(String[] args) throws Exception {
        PulsarPartitionSplitSerializer splits = PulsarPartitionSplitSerializer.INSTANCE;
        TopicPartition second = new TopicPartition("persistent://shop/eu/orders", 2);
        TopicPartition ranged = new TopicPartition("persistent://shop/eu/payments",
                Arrays.asList(new TopicRange(0, 9), new TopicRange(20, 65535)));
        PulsarPartitionSplit[] all = {
            new PulsarPartitionSplit(second, StopCursor.never()),
            new PulsarPartitionSplit(second, StopCursor.latest(), new MessageIdImpl(7, 12, 2), null),
            new PulsarPartitionSplit(ranged, StopCursor.atEventTime(5), new BatchMessageIdImpl(8, 3, -1, 4), new TxnID(1, 99)),
        };
        String[] positions = {null, "after 7:12:2", "after 8:3:-1:4"};
        for (int i = 0; i < all.length; i++) {
            Map<String, Object> expected = new LinkedHashMap<>();
            expected.put("split_id", all[i].splitId());
            expected.put("topic", all[i].getPartition().getTopic());
            expected.put("partition", all[i].getPartition().getPartitionId());
            expected.put("position", positions[i]);
            expected.put("transaction_id", i < 2 ? null : new long[] {1, 99});
            Written.print("pulsar-source", RELEASE, "split", splits.getVersion(), splits.serialize(all[i]), expected);
        }
        PulsarSourceEnumStateSerializer states = PulsarSourceEnumStateSerializer.INSTANCE;
        Map<String, Object> expected = new LinkedHashMap<>();
        expected.put("splits", Arrays.asList(
                Arrays.asList(all[0].splitId(), "assigned"), Arrays.asList(all[2].splitId(), "assigned")));
        Written.print("pulsar-source", RELEASE, "enumerator", states.getVersion(),
                states.serialize(new PulsarSourceEnumState(new LinkedHashSet<>(Arrays.asList(second, ranged)))), expected);

        PulsarCommittableSerializer committables = new PulsarCommittableSerializer();
        Map<String, Object> committable = new LinkedHashMap<>();
        committable.put("topic", "persistent://shop/eu/out");
        committable.put("most_significant", 3);
        committable.put("least_significant", 4000000000L);
        Written.print("pulsar-sink", RELEASE, "committable", committables.getVersion(),
                committables.serialize(new PulsarCommittable(new TxnID(3, 4000000000L), "persistent://shop/eu/out")), committable);
    }
}
