package harness;

import java.util.ArrayList;
import java.util.Map;
import java.util.UUID;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.functions.RichFlatMapFunction;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeHint;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.connectors.kafka.internals.KafkaTopicPartition;
import org.apache.flink.util.Collector;

/** Restores an operator that has the state of the Kafka consumer before FLIP-27, and returns what Flink gives each subtask of it. */
public final class ConsumerJob {
    private ConsumerJob() {}

    /** Has the consumer's state, by the types that the consumer names. */
    static final class Consumer extends RichFlatMapFunction<Long, String> implements CheckpointedFunction {
        private static final long serialVersionUID = 1L;
        private final String run;

        Consumer(String run) {
            this.run = run;
        }

        @Override
        public void initializeState(FunctionInitializationContext context) throws Exception {
            TypeInformation<Tuple2<KafkaTopicPartition, Long>> type =
                    TypeInformation.of(new TypeHint<Tuple2<KafkaTopicPartition, Long>>() {});
            for (Tuple2<KafkaTopicPartition, Long> one : context.getOperatorStateStore()
                    .getUnionListState(new ListStateDescriptor<>("topic-partition-offset-states", type)).get()) {
                Board.of(run).records.add(one.f0 + "@" + one.f1);
            }
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) {}

        @Override
        public void flatMap(Long value, Collector<String> out) {}
    }

    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        String run = UUID.randomUUID().toString();
        try {
            StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
            env.setParallelism(2);
            env.fromSequence(0, 1).uid("numbers").flatMap(new Consumer(run)).returns(Types.STRING)
                    .uid(request.get("uid").asText());
            JobID job = cluster.submit(env, request.get("snapshot").asText(), true);
            cluster.awaitEnd(job);
            return Values.single("records", new ArrayList<>(Board.of(run).records));
        } finally {
            Board.forget(run);
        }
    }
}
