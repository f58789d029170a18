package writing;

import com.getindata.connectors.http.internal.sink.HttpSinkRequestEntry;
import com.getindata.connectors.http.internal.sink.HttpSinkWriterStateSerializer;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.connector.base.sink.writer.AsyncSinkWriterStateSerializer;
import org.apache.flink.connector.base.sink.writer.BufferedRequestState;
import org.apache.flink.connector.base.sink.writer.RequestEntryWrapper;
import org.apache.flink.connector.dynamodb.sink.DynamoDbWriteRequest;
import org.apache.flink.connector.dynamodb.sink.DynamoDbWriteRequestType;
import org.apache.flink.connector.dynamodb.sink.DynamoDbWriterStateSerializer;
import org.apache.flink.connector.firehose.sink.KinesisFirehoseStateSerializer;
import org.apache.flink.connector.kinesis.sink.KinesisStreamsStateSerializer;
import org.apache.flink.connector.sqs.sink.SqsStateSerializer;
import software.amazon.awssdk.core.SdkBytes;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;
import software.amazon.awssdk.services.firehose.model.Record;
import software.amazon.awssdk.services.kinesis.model.PutRecordsRequestEntry;
import software.amazon.awssdk.services.sqs.model.SendMessageBatchRequestEntry;

/** Writers' states of sinks based on AsyncSinkBase, by the connectors' own serializers. */
public final class AsyncSinks {
    private static final String[] TEXTS = {"", "{\"order\": 1}", "Größe \uD83D\uDE00"};
    private static final byte[] BINARY = {0, 1, (byte) 0xff, (byte) 0xfe};

    public static void main(String[] args) throws Exception {
        kinesis();
        sqs();
        firehose();
        http();
        dynamoDb();
    }

    private static void kinesis() throws Exception {
        for (boolean uuids : new boolean[] {false, true}) {
            List<RequestEntryWrapper<PutRecordsRequestEntry>> entries = new ArrayList<>();
            List<Object> expected = new ArrayList<>();
            int n = 0;
            for (byte[] data : payloads()) {
                String key = uuids ? uuid(n++) : "key " + n++;
                entries.add(new RequestEntryWrapper<>(
                        PutRecordsRequestEntry.builder().data(SdkBytes.fromByteArray(data)).partitionKey(key).build(),
                        data.length));
                expected.add(with(payload(data), "key", key));
            }
            write(uuids ? "kinesis-streams-sink or sqs-sink" : "kinesis-streams-sink", "1.15.2",
                    new KinesisStreamsStateSerializer(), uuids ? entries.subList(0, 3) : entries,
                    uuids ? expected.subList(0, 3) : expected);
        }
    }

    private static void sqs() throws Exception {
        List<RequestEntryWrapper<SendMessageBatchRequestEntry>> entries = new ArrayList<>();
        List<Object> expected = new ArrayList<>();
        for (int n = 0; n < TEXTS.length; n++) {
            entries.add(new RequestEntryWrapper<>(
                    SendMessageBatchRequestEntry.builder().id(uuid(n)).messageBody(TEXTS[n]).build(),
                    TEXTS[n].getBytes(StandardCharsets.UTF_8).length));
            expected.add(with(payload(TEXTS[n].getBytes(StandardCharsets.UTF_8)), "key", uuid(n)));
        }
        write("kinesis-streams-sink or sqs-sink", "5.0.0-1.20", new SqsStateSerializer(), entries, expected);
    }

    private static void firehose() throws Exception {
        List<RequestEntryWrapper<Record>> entries = new ArrayList<>();
        List<Object> expected = new ArrayList<>();
        for (byte[] data : payloads()) {
            Record record = Record.builder().data(SdkBytes.fromByteArray(data)).build();
            entries.add(new RequestEntryWrapper<>(record, data.length));
            expected.add(payload(data));
        }
        write("firehose-sink", "4.3.0-1.19", new KinesisFirehoseStateSerializer(), entries, expected);
        write("", "4.3.0-1.19", new KinesisFirehoseStateSerializer(), new ArrayList<>(), new ArrayList<>());
    }

    private static void http() throws Exception {
        List<RequestEntryWrapper<HttpSinkRequestEntry>> entries = new ArrayList<>();
        List<Object> expected = new ArrayList<>();
        for (byte[] data : payloads()) {
            String method = entries.size() % 2 == 0 ? "POST" : "PUT";
            entries.add(new RequestEntryWrapper<>(new HttpSinkRequestEntry(method, data), data.length));
            expected.add(with(payload(data), "method", method));
        }
        write("http-sink", "0.25.0", new HttpSinkWriterStateSerializer(), entries, expected);
    }

    private static void dynamoDb() throws Exception {
        SdkBytes bytes = SdkBytes.fromByteArray(BINARY);
        Map<String, AttributeValue> item = new LinkedHashMap<>();
        Map<String, Object> shown = new LinkedHashMap<>();
        put(item, shown, "id", AttributeValue.fromS("a-1"), "S", "a-1");
        put(item, shown, "price", AttributeValue.fromN("12.50"), "N", "12.50");
        put(item, shown, "paid", AttributeValue.fromBool(false), "BOOL", false);
        put(item, shown, "note", AttributeValue.fromNul(true), "NULL", true);
        put(item, shown, "raw", AttributeValue.fromB(bytes), "B", hex(BINARY));
        put(item, shown, "tags", AttributeValue.fromSs(List.of("x", "Größe")), "SS", List.of("x", "Größe"));
        put(item, shown, "counts", AttributeValue.fromNs(List.of("1", "-2")), "NS", List.of("1", "-2"));
        put(item, shown, "parts", AttributeValue.fromBs(List.of(bytes)), "BS", List.of(hex(BINARY)));
        AttributeValue inner = AttributeValue.fromM(Map.of("n", AttributeValue.fromN("7")));
        put(item, shown, "lines", AttributeValue.fromL(List.of(inner, AttributeValue.fromL(List.of()))),
                "L", List.of(Map.of("M", Map.of("n", Map.of("N", "7"))), Map.of("L", List.of())));
        Map<String, AttributeValue> key = Map.of("id", AttributeValue.fromS("a-2"));
        List<RequestEntryWrapper<DynamoDbWriteRequest>> entries = new ArrayList<>();
        entries.add(new RequestEntryWrapper<>(
                DynamoDbWriteRequest.builder().setType(DynamoDbWriteRequestType.PUT).setItem(item).build(), 0));
        entries.add(new RequestEntryWrapper<>(
                DynamoDbWriteRequest.builder().setType(DynamoDbWriteRequestType.DELETE).setItem(key).build(), 0));
        write("dynamodb-sink", "4.3.0-1.19", new DynamoDbWriterStateSerializer(), entries, List.of(
                Map.of("kind", "put", "item", shown),
                Map.of("kind", "delete", "item", Map.of("id", Map.of("S", "a-2")))));
    }

    private static void put(Map<String, AttributeValue> item, Map<String, Object> shown, String name,
            AttributeValue value, String type, Object content) {
        item.put(name, value);
        shown.put(name, Map.of(type, content));
    }

    private static List<byte[]> payloads() {
        List<byte[]> all = new ArrayList<>();
        for (String text : TEXTS) {
            all.add(text.getBytes(StandardCharsets.UTF_8));
        }
        all.add(BINARY);
        return all;
    }

    private static Map<String, Object> payload(byte[] data) {
        return data == BINARY || java.util.Arrays.equals(data, BINARY)
                ? with(Map.of(), "data", hex(data))
                : with(Map.of(), "text", new String(data, StandardCharsets.UTF_8));
    }

    private static Map<String, Object> with(Map<String, Object> fields, String name, Object value) {
        Map<String, Object> all = new LinkedHashMap<>(fields);
        all.put(name, value);
        return all;
    }

    private static String uuid(int n) {
        return new java.util.UUID(0x1234567890abcdefL, n).toString();
    }

    private static String hex(byte[] data) {
        return Written.hex(data);
    }

    private static <T extends Serializable> void write(String connector, String release,
            AsyncSinkWriterStateSerializer<T> serializer, List<RequestEntryWrapper<T>> entries, List<Object> expected)
            throws Exception {
        Written.print(connector, release, "writer", serializer.getVersion(),
                serializer.serialize(new BufferedRequestState<>(entries)), expected);
    }
}
