package harness;

import com.google.auth.Credentials;
import com.google.protobuf.ByteString;
import com.google.pubsub.v1.PubsubMessage;
import com.google.pubsub.v1.ReceivedMessage;
import java.net.URI;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.connectors.gcp.pubsub.PubSubSource;
import org.apache.flink.streaming.connectors.gcp.pubsub.common.PubSubSubscriber;
import org.apache.flink.streaming.connectors.gcp.pubsub.common.PubSubSubscriberFactory;

/** Reads messages of Pub/Sub with the connector's source, whose subscriber delivers them without a server. */
public final class PubSubJob {
    private static final AtomicInteger PULLED = new AtomicInteger();

    private PubSubJob() {}

    /** The source asks the environment for credentials if it has none. */
    static final class NoCredentials extends Credentials {
        @Override
        public String getAuthenticationType() {
            return "none";
        }

        @Override
        public Map<String, List<String>> getRequestMetadata(URI uri) {
            return Map.of();
        }

        @Override
        public boolean hasRequestMetadata() {
            return false;
        }

        @Override
        public boolean hasRequestMetadataOnly() {
            return false;
        }

        @Override
        public void refresh() {}
    }

    /** Delivers a number of messages once. */
    static final class Subscriber implements PubSubSubscriber {
        private final int messages;

        Subscriber(int messages) {
            this.messages = messages;
        }

        @Override
        public List<ReceivedMessage> pull() {
            int n = PULLED.getAndIncrement();
            if (n >= messages) {
                try {
                    Thread.sleep(20);
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
                return List.of();
            }
            PubsubMessage message = PubsubMessage.newBuilder().setData(ByteString.copyFromUtf8("body " + n)).build();
            return List.of(ReceivedMessage.newBuilder().setAckId("größe-" + n).setMessage(message).build());
        }

        @Override
        public void acknowledge(List<String> ids) {}

        @Override
        public void close() {}
    }

    static final class Factory implements PubSubSubscriberFactory {
        private final int messages;

        Factory(int messages) {
            this.messages = messages;
        }

        @Override
        public PubSubSubscriber getSubscriber(Credentials credentials) {
            return new Subscriber(messages);
        }
    }

    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        PULLED.set(0);
        int messages = 5;
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(2);
        env.enableCheckpointing(31_536_000_000L);
        env.addSource(PubSubSource.newBuilder()
                        .withDeserializationSchema(new SimpleStringSchema())
                        .withProjectName("shop")
                        .withSubscriptionName("orders")
                        .withCredentials(new NoCredentials())
                        .withPubSubSubscriberFactory(new Factory(messages))
                        .build())
                .uid("pubsub")
                .sinkTo(new DiscardingSink<>()).uid("sink");
        JobID job = cluster.submit(env, null, true);
        try {
            // A few pulls without messages follow the last message.
            cluster.await(job, "the messages", () -> PULLED.get() > messages + 4);
            Map<String, Object> out = new LinkedHashMap<>();
            out.put("savepoint", cluster.savepoint(job, request.get("savepoint").asText(), "CANONICAL"));
            List<String> ids = new ArrayList<>();
            for (int n = 0; n < messages; n++) {
                ids.add("größe-" + n);
            }
            out.put("values", ids);
            return out;
        } finally {
            cluster.cancel(job);
        }
    }
}
