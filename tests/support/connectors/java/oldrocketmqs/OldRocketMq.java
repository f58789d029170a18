package writing;

import java.lang.reflect.Constructor;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.flink.source.enumerator.RocketMQSourceEnumState;
import org.apache.rocketmq.flink.source.enumerator.RocketMQSourceEnumStateSerializer;
import org.apache.rocketmq.flink.source.split.RocketMQPartitionSplit;
import org.apache.rocketmq.flink.source.split.RocketMQPartitionSplitSerializer;

/** Splits and enumerator state of RocketMQ's connector of package org.apache.rocketmq, by its own serializers. */
public final class OldRocketMq {
    public static void main(String[] args) throws Exception {
        RocketMQPartitionSplit first = new RocketMQPartitionSplit("orders", "broker-a", 0, 0, Long.MAX_VALUE);
        RocketMQPartitionSplit second = new RocketMQPartitionSplit("größe", "broker-b", 7, 1L << 40, 1767323045678L);
        RocketMQPartitionSplitSerializer serializer = new RocketMQPartitionSplitSerializer();
        for (RocketMQPartitionSplit split : List.of(first, second)) {
            boolean stops = split.getStoppingTimestamp() != Long.MAX_VALUE;
            Map<String, Object> expected = new LinkedHashMap<>();
            expected.put("split_id", split.splitId());
            expected.put("source", split.getTopic());
            expected.put("broker", split.getBroker());
            expected.put("partition", split.getPartition());
            expected.put("position", String.valueOf(split.getStartingOffset()));
            expected.put("stop", stops ? "timestamp=" + split.getStoppingTimestamp() : null);
            Written.print("rocketmq-source", args[0], "split", serializer.getVersion(), serializer.serialize(split),
                    expected);
        }
        RocketMQSourceEnumStateSerializer states = new RocketMQSourceEnumStateSerializer();
        Map<Integer, List<RocketMQPartitionSplit>> assigned = new LinkedHashMap<>();
        assigned.put(0, List.of(first, second));
        assigned.put(1, List.of());
        Constructor<RocketMQSourceEnumState> constructor =
                RocketMQSourceEnumState.class.getDeclaredConstructor(Map.class);
        constructor.setAccessible(true);
        Object[][] splits = {{first.splitId(), "assigned"}, {second.splitId(), "assigned"}};
        Written.print("rocketmq-source", args[0], "enumerator", states.getVersion(),
                states.serialize(constructor.newInstance(assigned)), Map.of("splits", splits));
    }
}
