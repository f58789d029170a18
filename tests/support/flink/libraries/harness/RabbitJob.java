package harness;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.Consumer;
import com.rabbitmq.client.Envelope;
import java.io.IOException;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.SinkFunction;
import org.apache.flink.streaming.connectors.rabbitmq.RMQSource;
import org.apache.flink.streaming.connectors.rabbitmq.common.RMQConnectionConfig;

/** Reads messages of RabbitMQ with the connector's source, whose connection answers without a broker. */
public final class RabbitJob {
    /** By run: the messages that the job has received. */
    static final Map<String, Set<String>> RECEIVED = new ConcurrentHashMap<>();

    private RabbitJob() {}

    /** A source whose broker delivers the messages 0 to {@code end}, and again after a restart. */
    static final class Source extends RMQSource<String> {
        private final int end;

        Source(int end) {
            super(config(), "orders", true, new SimpleStringSchema());
            this.end = end;
        }

        private static RMQConnectionConfig config() {
            return new RMQConnectionConfig.Builder()
                    .setHost("localhost").setPort(1).setVirtualHost("/").setUserName("u").setPassword("p").build();
        }

        @Override
        protected Connection setupConnection() {
            Channel channel = (Channel) Proxy.newProxyInstance(
                    Channel.class.getClassLoader(), new Class<?>[] {Channel.class}, (proxy, method, arguments) -> {
                        if (method.getName().equals("basicConsume")) {
                            deliver((Consumer) arguments[2], end);
                            return "tag";
                        }
                        return null;
                    });
            return (Connection) Proxy.newProxyInstance(
                    Connection.class.getClassLoader(), new Class<?>[] {Connection.class},
                    (proxy, method, arguments) -> method.getName().equals("createChannel") ? channel : null);
        }

        private static void deliver(Consumer consumer, int end) throws IOException {
            consumer.handleConsumeOk("tag");
            for (int n = 0; n < end; n++) {
                AMQP.BasicProperties properties = new AMQP.BasicProperties.Builder().correlationId("order-" + n).build();
                byte[] body = ("body " + n).getBytes(StandardCharsets.UTF_8);
                consumer.handleDelivery("tag", new Envelope(n, false, "", ""), properties, body);
            }
        }
    }

    static final class Collect implements SinkFunction<String> {
        private final String run;

        Collect(String run) {
            this.run = run;
        }

        @Override
        public void invoke(String message, Context context) {
            Set<String> received = RECEIVED.get(run);
            if (received != null) {
                received.add(message);
            }
        }
    }

    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        String run = UUID.randomUUID().toString();
        Set<String> received = java.util.Collections.synchronizedSet(new TreeSet<>());
        RECEIVED.put(run, received);
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(1);
        env.enableCheckpointing(31_536_000_000L);
        env.addSource(new Source(request.get("messages").asInt())).uid("rabbit")
                .addSink(new Collect(run)).uid("sink-" + run);
        JobID job = cluster.submit(env, request.path("snapshot").asText(null), true);
        Map<String, Object> out = new LinkedHashMap<>();
        try {
            cluster.await(job, "the messages", () -> received.size() == request.get("wanted").asInt());
            if (request.hasNonNull("savepoint")) {
                out.put("savepoint", cluster.savepoint(job, request.get("savepoint").asText(), "CANONICAL"));
            }
            out.put("values", new TreeSet<>(received));
            return out;
        } finally {
            cluster.cancel(job);
            RECEIVED.remove(run);
        }
    }
}
