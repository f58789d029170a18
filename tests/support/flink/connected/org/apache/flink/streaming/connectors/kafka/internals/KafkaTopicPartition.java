package org.apache.flink.streaming.connectors.kafka.internals;

import java.io.Serializable;

/** A class of the name and the fields of the one that the Kafka consumer before FLIP-27 keeps, which Kryo writes by its fields. */
public final class KafkaTopicPartition implements Serializable {
    private static final long serialVersionUID = 722083576322742325L;
    private final String topic;
    private final int partition;
    private final int cachedHash;

    public KafkaTopicPartition(String topic, int partition) {
        this.topic = topic;
        this.partition = partition;
        this.cachedHash = 31 * topic.hashCode() + partition;
    }

    /** Also says whether the hash that was read is the one that the class makes. */
    @Override
    public String toString() {
        boolean same = cachedHash == new KafkaTopicPartition(topic, partition).cachedHash;
        return topic + "-" + partition + (same ? "" : " with another hash");
    }
}
