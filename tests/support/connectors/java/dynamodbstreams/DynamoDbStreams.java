package writing;

import java.lang.reflect.Constructor;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.connector.dynamodb.source.enumerator.DynamoDBStreamsShardSplitWithAssignmentStatus;
import org.apache.flink.connector.dynamodb.source.enumerator.DynamoDbStreamsSourceEnumeratorState;
import org.apache.flink.connector.dynamodb.source.enumerator.DynamoDbStreamsSourceEnumeratorStateSerializer;
import org.apache.flink.connector.dynamodb.source.enumerator.SplitAssignmentStatus;
import org.apache.flink.connector.dynamodb.source.split.DynamoDbStreamsShardSplit;
import org.apache.flink.connector.dynamodb.source.split.DynamoDbStreamsShardSplitSerializer;
import org.apache.flink.connector.dynamodb.source.split.StartingPosition;
import software.amazon.awssdk.services.dynamodb.model.SequenceNumberRange;
import software.amazon.awssdk.services.dynamodb.model.Shard;

/** Splits and enumerator state of the source of DynamoDB Streams, by its own serializers. */
public final class DynamoDbStreams {
    private static final String ARN =
            "arn:aws:dynamodb:eu-central-1:123456789012:table/Größe/stream/2026-01-02T03:04:05.678";
    private static final DynamoDbStreamsShardSplitSerializer SERIALIZER = new DynamoDbStreamsShardSplitSerializer();

    public static void main(String[] args) throws Exception {
        DynamoDbStreamsShardSplit first = split("shardId-1", StartingPosition.fromStart(), null, List.of(), false);
        DynamoDbStreamsShardSplit last = split("shardId-2", StartingPosition.latest(), "shardId-1", List.of(), false);
        List<Shard> children = List.of(child("shardId-4", "600", "699"), child("shardId-5", "601", null));
        DynamoDbStreamsShardSplit read = split(
                "shardId-3", StartingPosition.continueFromSequenceNumber("500"), "shardId-1", children, true);
        boolean knowsEnd = SERIALIZER.getVersion() > 0;
        boolean knowsChildren = SERIALIZER.getVersion() > 1;
        write(args[0], first, fields("shardId-1", null, "earliest", null, knowsEnd ? false : null, List.of()));
        write(args[0], last, fields("shardId-2", null, "latest", "shardId-1", knowsEnd ? false : null, List.of()));
        List<Object> shown = List.of(
                shownChild("shardId-4", "600", "699"), shownChild("shardId-5", "601", null));
        write(args[0], read, fields(
                "shardId-3", "500", null, "shardId-1", knowsEnd ? true : null, knowsChildren ? shown : List.of()));
        enumerator(args[0], first, last, read);
    }

    private static void enumerator(String release, DynamoDbStreamsShardSplit... splits) throws Exception {
        SplitAssignmentStatus[] statuses = SplitAssignmentStatus.values();
        List<DynamoDBStreamsShardSplitWithAssignmentStatus> known = new ArrayList<>();
        List<Object> shown = new ArrayList<>();
        for (int i = 0; i < splits.length; i++) {
            known.add(new DynamoDBStreamsShardSplitWithAssignmentStatus(splits[i], statuses[i]));
            shown.add(List.of(splits[i].splitId(), statuses[i].name().toLowerCase()));
        }
        DynamoDbStreamsSourceEnumeratorStateSerializer serializer =
                new DynamoDbStreamsSourceEnumeratorStateSerializer(SERIALIZER);
        Instant start = Instant.parse("2026-01-02T03:04:05.678Z");
        byte[] data = serializer.serialize(new DynamoDbStreamsSourceEnumeratorState(known, start));
        Map<String, Object> expected = new LinkedHashMap<>();
        expected.put("start_ms", start.toEpochMilli());
        expected.put("split_version", SERIALIZER.getVersion());
        expected.put("splits", shown);
        Written.print("dynamodb-streams-source", release, "enumerator", serializer.getVersion(), data, expected);
    }

    private static void write(String release, DynamoDbStreamsShardSplit split, Object expected) throws Exception {
        Written.print("dynamodb-streams-source", release, "split", SERIALIZER.getVersion(), SERIALIZER.serialize(split),
                expected);
    }

    /** Each release added a parameter: since 5.1, whether the shard is finished, and since 6.0, its children before it. */
    private static DynamoDbStreamsShardSplit split(
            String shard, StartingPosition position, String parent, List<Shard> children, boolean finished)
            throws Exception {
        Constructor<?> newest = Arrays.stream(DynamoDbStreamsShardSplit.class.getConstructors())
                .max((a, b) -> a.getParameterCount() - b.getParameterCount()).orElseThrow();
        List<Object> values = new ArrayList<>(Arrays.asList(ARN, shard, position, parent));
        if (newest.getParameterCount() == 6) {
            values.add(children);
        }
        if (newest.getParameterCount() >= 5) {
            values.add(finished);
        }
        return (DynamoDbStreamsShardSplit) newest.newInstance(values.toArray());
    }

    private static Shard child(String shard, String first, String last) {
        SequenceNumberRange range =
                SequenceNumberRange.builder().startingSequenceNumber(first).endingSequenceNumber(last).build();
        return Shard.builder().shardId(shard).parentShardId("shardId-3").sequenceNumberRange(range).build();
    }

    private static Map<String, Object> shownChild(String shard, String first, String last) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("shard_id", shard);
        fields.put("parent", "shardId-3");
        fields.put("starting_sequence_number", first);
        fields.put("ending_sequence_number", last);
        return fields;
    }

    private static Map<String, Object> fields(
            String shard, String position, String marker, String parent, Object finished, List<?> children) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("split_id", shard);
        fields.put("stream_arn", ARN);
        fields.put("source", "Größe");
        fields.put("position", position);
        fields.put("marker", marker);
        fields.put("parent", parent);
        fields.put("finished", finished);
        fields.put("children", children);
        return fields;
    }
}
