package writing;

import java.lang.reflect.Constructor;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
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
    private static final TopicRange LOW = new TopicRange(0, 9);

    public static void main(String[] args) throws Exception {
        String release = args[0].replace("pulsar-", "");
        PulsarPartitionSplitSerializer splits = PulsarPartitionSplitSerializer.INSTANCE;
        boolean first = splits.getVersion() == 0;
        TopicPartition second = partition("persistent://shop/eu/orders", 2, Collections.singletonList(new TopicRange(0, 65535)));
        TopicPartition ranged = partition("persistent://shop/eu/payments", -1,
                first ? Collections.singletonList(LOW) : Arrays.asList(LOW, new TopicRange(20, 65535)));
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
            Written.print("pulsar-source", release, "split", splits.getVersion(), splits.serialize(all[i]), expected);
        }
        PulsarSourceEnumStateSerializer states = PulsarSourceEnumStateSerializer.INSTANCE;
        Map<String, Object> expected = new LinkedHashMap<>();
        expected.put("splits", Arrays.asList(
                Arrays.asList(all[0].splitId(), "assigned"), Arrays.asList(all[2].splitId(), "assigned")));
        Set<TopicPartition> partitions = new LinkedHashSet<>(Arrays.asList(second, ranged));
        Written.print("pulsar-source", release, "enumerator", states.getVersion(), states.serialize(state(partitions, all)), expected);
        if (!first) {
            Transactions.print(release);
        }
    }

    /** A partition. The first release has one range per partition. */
    private static TopicPartition partition(String topic, int number, List<TopicRange> ranges) throws Exception {
        for (Constructor<?> create : TopicPartition.class.getConstructors()) {
            Class<?>[] types = create.getParameterTypes();
            if (types.length == 3 && types[1] == int.class) {
                return (TopicPartition) create.newInstance(topic, number, types[2] == List.class ? ranges : ranges.get(0));
            }
        }
        throw new IllegalStateException("no constructor of TopicPartition");
    }

    /** The state of an enumerator. The first release also stores splits by subtask, and names of readers. */
    private static PulsarSourceEnumState state(Set<TopicPartition> partitions, PulsarPartitionSplit[] all) throws Exception {
        Constructor<?> create = PulsarSourceEnumState.class.getConstructors()[0];
        if (create.getParameterCount() == 1) {
            return (PulsarSourceEnumState) create.newInstance(partitions);
        }
        return (PulsarSourceEnumState) create.newInstance(partitions, Collections.singleton(all[0]),
                Collections.singletonMap(1, Collections.singleton(all[2])),
                Collections.singletonMap(0, Collections.singleton("id")), true);
    }

    /** The sink, which the first release lacks. */
    private static final class Transactions {
        static void print(String release) throws Exception {
            PulsarCommittableSerializer committables = new PulsarCommittableSerializer();
            Map<String, Object> committable = new LinkedHashMap<>();
            committable.put("topic", "persistent://shop/eu/out");
            committable.put("most_significant", 3);
            committable.put("least_significant", 4000000000L);
            Written.print("pulsar-sink", release, "committable", committables.getVersion(),
                    committables.serialize(new PulsarCommittable(new TxnID(3, 4000000000L), "persistent://shop/eu/out")), committable);
        }
    }
}
