package writing;

import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.flink.connector.mongodb.source.enumerator.MongoSourceEnumState;
import org.apache.flink.connector.mongodb.source.enumerator.MongoSourceEnumStateSerializer;
import org.apache.flink.connector.mongodb.source.split.MongoScanSourceSplit;
import org.apache.flink.connector.mongodb.source.split.MongoSourceSplitSerializer;
import org.bson.BsonDocument;

/** States of MongoDB's source, by its own serializers. */
public final class MongoDb {
    private static final String RELEASE = "1.1.0";

    public static void main(String[] args) throws Exception {
        BsonDocument hint = BsonDocument.parse("{_id: 1}");
        BsonDocument least = BsonDocument.parse("{_id: {$minKey: 1}}");
        BsonDocument middle = BsonDocument.parse("{_id: ObjectId('65a1b2c3d4e5f60718293a4b')}");
        BsonDocument most = BsonDocument.parse("{_id: {$maxKey: 1}}");
        MongoScanSourceSplit[] all = {
            new MongoScanSourceSplit("shop.orders_0", "shop", "orders", least, middle, hint, 17),
            new MongoScanSourceSplit("shop.orders_1", "shop", "orders", middle, most, hint),
        };
        MongoSourceSplitSerializer splits = MongoSourceSplitSerializer.INSTANCE;
        for (MongoScanSourceSplit split : all) {
            Map<String, Object> expected = new LinkedHashMap<>();
            expected.put("split_id", split.splitId());
            expected.put("source", "shop.orders");
            expected.put("start", split.getMin().toJson());
            expected.put("stop", split.getMax().toJson());
            expected.put("hint", split.getHint().toJson());
            expected.put("position", "document " + split.getOffset());
            Written.print("mongodb-source", RELEASE, "split", splits.getVersion(), splits.serialize(split), expected);
        }
        MongoSourceEnumStateSerializer states = MongoSourceEnumStateSerializer.INSTANCE;
        Map<String, Object> expected = new LinkedHashMap<>();
        expected.put("splits", Arrays.asList(
                Arrays.asList("shop.orders_1", "unassigned"), Arrays.asList("shop.orders_0", "assigned")));
        expected.put("remaining_collections", Arrays.asList("shop.payments", "shop.Größen"));
        expected.put("processed_collections", Collections.singletonList("shop.orders"));
        expected.put("initialized", true);
        Written.print("mongodb-source", RELEASE, "enumerator", states.getVersion(), states.serialize(new MongoSourceEnumState(
                Arrays.asList("shop.payments", "shop.Größen"), Collections.singletonList("shop.orders"),
                Collections.singletonList(all[1]), Collections.singletonMap("shop.orders_0", all[0]), true)), expected);
        expected = new LinkedHashMap<>();
        expected.put("splits", Collections.emptyList());
        expected.put("initialized", false);
        Written.print("mongodb-source", RELEASE, "enumerator", states.getVersion(),
                states.serialize(MongoSourceEnumState.initialState()), expected);
    }
}
