package harness;

import java.math.BigInteger;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.flink.api.common.functions.RuntimeContext;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.kinesis.shaded.com.amazonaws.services.kinesis.model.HashKeyRange;
import org.apache.flink.kinesis.shaded.com.amazonaws.services.kinesis.model.SequenceNumberRange;
import org.apache.flink.kinesis.shaded.com.amazonaws.services.kinesis.model.Shard;
import org.apache.flink.streaming.api.functions.source.SourceFunction.SourceContext;
import org.apache.flink.streaming.connectors.kinesis.FlinkKinesisConsumer;
import org.apache.flink.streaming.connectors.kinesis.internals.KinesisDataFetcher;
import org.apache.flink.streaming.connectors.kinesis.model.KinesisStreamShardState;
import org.apache.flink.streaming.connectors.kinesis.model.SequenceNumber;
import org.apache.flink.streaming.connectors.kinesis.model.StreamShardHandle;
import org.apache.flink.streaming.connectors.kinesis.model.StreamShardMetadata;
import org.apache.flink.streaming.connectors.kinesis.serialization.KinesisDeserializationSchema;

/** The Kinesis consumer before FLIP-27. Shards and records are made up; the consumer, its state and its restore are the connector's. */
final class Shards {
    private static final int COUNT = 4;
    /** Records of a shard begin after this number. */
    private static final BigInteger START = new BigInteger("49590338271490256608559692538361571095921575989136588898");

    private Shards() {}

    static final class Consumer extends FlinkKinesisConsumer<String> {
        private final String run;

        Consumer(String run) {
            super("orders", new SimpleStringSchema(), settings());
            this.run = run;
        }

        private static Properties settings() {
            Properties settings = new Properties();
            settings.setProperty("aws.region", "eu-central-1");
            settings.setProperty("aws.credentials.provider", "BASIC");
            settings.setProperty("aws.credentials.provider.basic.accesskeyid", "none");
            settings.setProperty("aws.credentials.provider.basic.secretkey", "none");
            settings.setProperty("flink.stream.initpos", "TRIM_HORIZON");
            return settings;
        }

        @Override
        protected KinesisDataFetcher<String> createFetcher(List<String> streams, SourceContext<String> output,
                RuntimeContext context, Properties settings, KinesisDeserializationSchema<String> schema) {
            return new Fetcher(streams, output, context, settings, schema, run);
        }
    }

    /** Makes 200 records for each shard but the last one. Those of the second shard are parts of aggregated records. */
    private static final class Fetcher extends KinesisDataFetcher<String> {
        private final SourceContext<String> output;
        private final RuntimeContext context;
        private final String run;
        private volatile boolean ended;

        Fetcher(List<String> streams, SourceContext<String> output, RuntimeContext context, Properties settings,
                KinesisDeserializationSchema<String> schema, String run) {
            super(streams, output, context, settings, schema, (shard, subtasks) -> 0, null, null);
            this.output = output;
            this.context = context;
            this.run = run;
        }

        @Override
        public List<StreamShardHandle> discoverNewShardsToSubscribe() {
            List<StreamShardHandle> mine = new ArrayList<>();
            for (int i = context.getIndexOfThisSubtask(); i < COUNT; i += context.getNumberOfParallelSubtasks()) {
                mine.add(new StreamShardHandle("orders", new Shard()
                        .withShardId("shardId-00000000000" + i)
                        .withHashKeyRange(new HashKeyRange().withStartingHashKey(i + "0").withEndingHashKey(i + "9"))
                        .withSequenceNumberRange(new SequenceNumberRange().withStartingSequenceNumber(START.toString()))));
            }
            return mine;
        }

        @Override
        public void runFetcher() throws InterruptedException {
            List<KinesisStreamShardState> shards = getSubscribedShardsState();
            Map<String, Object> began = new TreeMap<>();
            for (KinesisStreamShardState shard : shards) {
                began.put(shard.getStreamShardMetadata().getShardId(), shard.getLastProcessedSequenceNum().toString());
            }
            Board.of(run).fired.add(began);
            while (!ended) {
                for (int i = 0; i < shards.size(); i++) {
                    emit(i, shards.get(i));
                }
                Thread.sleep(1);
            }
        }

        private void emit(int index, KinesisStreamShardState shard) {
            String id = shard.getStreamShardMetadata().getShardId();
            int number = id.charAt(id.length() - 1) - '0';
            SequenceNumber last = shard.getLastProcessedSequenceNum();
            boolean isFirst = !Character.isDigit(last.getSequenceNumber().charAt(0));
            BigInteger next = isFirst ? START : new BigInteger(last.getSequenceNumber()).add(BigInteger.ONE);
            int n = next.subtract(START).intValueExact();
            if (number == COUNT - 1 || n >= 200) {
                return;
            }
            synchronized (output.getCheckpointLock()) {
                output.collect(String.valueOf(number * 200 + n));
                updateState(index, number == 1 ? new SequenceNumber(next.toString(), n % 3) : new SequenceNumber(next.toString()));
            }
        }

        @Override
        public HashMap<StreamShardMetadata, SequenceNumber> snapshotState() {
            HashMap<StreamShardMetadata, SequenceNumber> state = super.snapshotState();
            Map<String, Object> found = new TreeMap<>();
            state.forEach((shard, number) -> found.put(shard.getShardId(), number.toString()));
            Map<String, Object> snapshot = new HashMap<>();
            snapshot.put("shards", found);
            Board.of(run).opened.add(snapshot);
            return state;
        }

        @Override
        public void shutdownFetcher() {
            ended = true;
            super.shutdownFetcher();
        }

        @Override
        public void awaitTermination() {}
    }
}
