package writing;

import java.lang.reflect.Constructor;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import org.apache.flink.connector.rocketmq.sink.committer.SendCommittable;
import org.apache.flink.connector.rocketmq.sink.committer.SendCommittableSerializer;
import org.apache.flink.connector.rocketmq.source.enumerator.RocketMQSourceEnumState;
import org.apache.flink.connector.rocketmq.source.enumerator.RocketMQSourceEnumStateSerializer;
import org.apache.flink.connector.rocketmq.source.split.RocketMQPartitionSplitSerializer;
import org.apache.flink.connector.rocketmq.source.split.RocketMQSourceSplit;
import org.apache.rocketmq.common.message.MessageQueue;

/** Splits, enumerator state and committables of RocketMQ's connector of package org.apache.flink, by its own serializers. */
public final class RocketMq {
    private static String release;

    public static void main(String[] args) throws Exception {
        release = args[0];
        split("orders", 0, 0, -1, true);
        split("größe", 7, 1L << 40, 1L << 41, false);
        Set<MessageQueue> queues = new LinkedHashSet<>();
        queues.add(new MessageQueue("orders", "broker-a", 0));
        queues.add(new MessageQueue("größe", "broker-b", 7));
        RocketMQSourceEnumStateSerializer serializer = new RocketMQSourceEnumStateSerializer();
        Map<String, Object> expected = new LinkedHashMap<>();
        expected.put("assigned_queues", new String[] {"größe#broker-b#7", "orders#broker-a#0"});
        Written.print("rocketmq-source", release, "enumerator", serializer.getVersion(),
                serializer.serialize(new RocketMQSourceEnumState(queues)), expected);
        committable("7F0000010A1B18B4AAC22A3F5E0A0000", "C0A8000100002A9F0000000000000F3C");
        // A broker that does not tell an offset: the writer leaves the id empty.
        committable("7F0000010A1B18B4AAC22A3F5E0A0001", "");
    }

    private static void split(String topic, int queue, long start, long stop, boolean increase) throws Exception {
        Constructor<?> newest = Arrays.stream(RocketMQSourceSplit.class.getConstructors())
                .max((a, b) -> a.getParameterCount() - b.getParameterCount()).orElseThrow();
        boolean knowsIncrease = newest.getParameterCount() == 6;
        String broker = "broker-" + queue;
        Object[] values = {topic, broker, queue, start, stop, increase};
        RocketMQSourceSplit split =
                (RocketMQSourceSplit) newest.newInstance(Arrays.copyOf(values, newest.getParameterCount()));
        RocketMQPartitionSplitSerializer serializer = new RocketMQPartitionSplitSerializer();
        Map<String, Object> expected = new LinkedHashMap<>();
        expected.put("split_id", split.splitId());
        expected.put("source", topic);
        expected.put("broker", broker);
        expected.put("partition", queue);
        expected.put("position", String.valueOf(start));
        expected.put("stop", stop < 0 ? null : String.valueOf(stop));
        expected.put("is_increase", knowsIncrease ? increase : null);
        Written.print(
                "rocketmq-source", release, "split", serializer.getVersion(), serializer.serialize(split), expected);
    }

    private static void committable(String message, String offset) throws Exception {
        SendCommittable sent = new SendCommittable();
        sent.setTopic("orders-größe");
        sent.setBrokerName("broker-a");
        sent.setQueueId(3);
        sent.setQueueOffset(1L << 40);
        sent.setMsgId(message);
        sent.setOffsetMsgId(offset);
        sent.setTransactionId(message);
        Map<String, Object> expected = new LinkedHashMap<>();
        expected.put("topic", "orders-größe");
        expected.put("broker", "broker-a");
        expected.put("queue", 3);
        expected.put("queue_offset", 1L << 40);
        expected.put("message_id", message);
        expected.put("offset_message_id", offset);
        expected.put("transaction_id", message);
        SendCommittableSerializer serializer = new SendCommittableSerializer();
        Written.print("rocketmq-sink", release, "committable", serializer.getVersion(), serializer.serialize(sent),
                expected);
    }
}
