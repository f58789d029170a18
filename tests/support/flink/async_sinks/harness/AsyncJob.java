package harness;

import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.Consumer;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.connector.base.sink.AsyncSinkBase;
import org.apache.flink.connector.base.sink.writer.AsyncSinkWriter;
import org.apache.flink.connector.base.sink.writer.AsyncSinkWriterStateSerializer;
import org.apache.flink.connector.base.sink.writer.BufferedRequestState;
import org.apache.flink.connector.base.sink.writer.config.AsyncSinkWriterConfiguration;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * Sends numbers with a sink based on {@code AsyncSinkBase}. As in the state of Elasticsearch's sink, a request begins like an operation that
 * Kryo has written. A job that takes a savepoint only collects requests.
 */
public final class AsyncJob {
    private static final byte[] HEAD =
            "\u0001\u0000co.elastic.clients.elasticsearch.core.bulk.IndexOperatio\u00ee".getBytes(StandardCharsets.ISO_8859_1);

    private AsyncJob() {}

    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        String run = UUID.randomUUID().toString();
        Board board = Board.of(run);
        boolean accepts = !request.hasNonNull("savepoint");
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(2);
        env.enableCheckpointing(31_536_000_000L);
        env.fromSequence(0, Long.MAX_VALUE / 2).setParallelism(1).uid("sequence")
                .map(new Slow(run)).setParallelism(1).uid("slow")
                .rebalance().sinkTo(new NumbersSink(run, accepts)).uid(request.get("uid").asText());
        JobID job = cluster.submit(env, request.path("snapshot").asText(null), false);
        Map<String, Object> out = new HashMap<>();
        try {
            cluster.await(job, "numbers", () -> board.finished.size() > 50);
            if (!accepts) {
                out.put("savepoint", cluster.savepoint(job, request.get("savepoint").asText(), "CANONICAL"));
            } else {
                cluster.checkpoint(job);
                List<Object> wanted = new ArrayList<>();
                request.get("wanted").forEach(number -> wanted.add(number.asLong()));
                cluster.await(job, "all wanted numbers and more",
                        () -> board.records.size() > wanted.size() && board.records.containsAll(wanted));
            }
        } finally {
            cluster.cancel(job);
            Board.forget(run);
        }
        out.put("sent", new ArrayList<>(board.records));
        return out;
    }

    /** Numbers, not too fast. */
    static final class Slow implements MapFunction<Long, Long> {
        private final String run;

        Slow(String run) {
            this.run = run;
        }

        @Override
        public Long map(Long n) throws Exception {
            Thread.sleep(1);
            Board.of(run).finished.add("");
            return n;
        }
    }

    /** A number. */
    static final class Request implements Serializable {
        final long number;

        Request(long number) {
            this.number = number;
        }

        byte[] bytes() throws IOException {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            out.write(HEAD);
            out.write(Long.toString(number).getBytes(StandardCharsets.US_ASCII));
            return out.toByteArray();
        }
    }

    private static final class RequestSerializer extends AsyncSinkWriterStateSerializer<Request> {
        @Override
        protected void serializeRequestToStream(Request request, DataOutputStream out) throws IOException {
            out.write(request.bytes());
        }

        @Override
        protected Request deserializeRequestFromStream(long size, DataInputStream in) throws IOException {
            byte[] bytes = new byte[(int) size];
            in.readFully(bytes);
            return new Request(Long.parseLong(
                    new String(bytes, HEAD.length, bytes.length - HEAD.length, StandardCharsets.US_ASCII)));
        }

        @Override
        public int getVersion() {
            return 1;
        }
    }

    private static final class NumbersSink extends AsyncSinkBase<Long, Request> {
        private final String run;
        private final boolean accepts;

        NumbersSink(String run, boolean accepts) {
            super((number, context) -> new Request(number), 5, 1, 1_000_001, 1_000_000_000, 50, 100);
            this.run = run;
            this.accepts = accepts;
        }

        @Override
        @Deprecated
        public NumbersWriter createWriter(Sink.InitContext context) {
            throw new UnsupportedOperationException("Flink calls the other method");
        }

        @Override
        public NumbersWriter createWriter(WriterInitContext context) {
            return restoreWriter(context, Collections.emptyList());
        }

        @Override
        public NumbersWriter restoreWriter(WriterInitContext context, Collection<BufferedRequestState<Request>> states) {
            return new NumbersWriter(run, accepts, context, states);
        }

        @Override
        public SimpleVersionedSerializer<BufferedRequestState<Request>> getWriterStateSerializer() {
            return new RequestSerializer();
        }
    }

    private static final class NumbersWriter extends AsyncSinkWriter<Long, Request> {
        private final String run;
        private final boolean accepts;

        NumbersWriter(String run, boolean accepts, WriterInitContext context, Collection<BufferedRequestState<Request>> states) {
            super((number, c) -> new Request(number), context,
                    AsyncSinkWriterConfiguration.builder().setMaxBatchSize(accepts ? 5 : 1_000_000)
                            .setMaxBatchSizeInBytes(1_000_000_000).setMaxInFlightRequests(1)
                            .setMaxBufferedRequests(1_000_001).setMaxTimeInBufferMS(accepts ? 50 : 3_600_000)
                            .setMaxRecordSizeInBytes(100).build(),
                    states);
            this.run = run;
            this.accepts = accepts;
        }

        @Override
        protected void submitRequestEntries(List<Request> requests, Consumer<List<Request>> toRetry) {
            if (!accepts) {
                throw new IllegalStateException("a batch is never full, and waits longer than the job runs");
            }
            requests.forEach(request -> Board.of(run).records.add(request.number));
            toRetry.accept(Collections.emptyList());
        }

        @Override
        protected long getSizeInBytes(Request request) {
            try {
                return request.bytes().length;
            } catch (IOException e) {
                throw new java.io.UncheckedIOException(e);
            }
        }
    }
}
