package writing;

import co.elastic.clients.elasticsearch._types.VersionType;
import co.elastic.clients.elasticsearch.core.bulk.BulkOperationVariant;
import co.elastic.clients.elasticsearch.core.bulk.CreateOperation;
import co.elastic.clients.elasticsearch.core.bulk.DeleteOperation;
import co.elastic.clients.elasticsearch.core.bulk.IndexOperation;
import co.elastic.clients.elasticsearch.core.bulk.UpdateOperation;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.connector.base.sink.writer.BufferedRequestState;
import org.apache.flink.connector.base.sink.writer.RequestEntryWrapper;
import org.apache.flink.connector.elasticsearch.sink.Elasticsearch8AsyncSinkSerializer;
import org.apache.flink.connector.elasticsearch.sink.Operation;
import org.apache.flink.connector.elasticsearch.sink.OperationSerializer;

/** Writers' states of the sink of Elasticsearch 8, by its own serializer. */
public final class Elasticsearch {
    public static void main(String[] args) throws Exception {
        Map<String, Object> document = new LinkedHashMap<>();
        document.put("name", "Größe \uD83D\uDE00");
        document.put("price", 1250L);
        BulkOperationVariant[] operations = {
            IndexOperation.of(o -> o.index("orders").id("order-1").document(document)),
            new IndexOperation.Builder<Map<String, Object>>().index("orders-größe").id("2").document(document)
                    .version(7L).versionType(VersionType.External).routing("shop").build(),
            CreateOperation.of(o -> o.index("orders").id("3").document(new HashMap<>(document))),
            UpdateOperation.of(o -> o.index("orders").id("4").retryOnConflict(3)
                    .action(a -> a.doc(document).docAsUpsert(true))),
            DeleteOperation.of(o -> o.index("orders").id("5")),
        };
        List<RequestEntryWrapper<Operation>> entries = new ArrayList<>();
        List<Object> expected = new ArrayList<>();
        for (BulkOperationVariant variant : operations) {
            Operation operation = new Operation(variant);
            OperationSerializer serializer = new OperationSerializer();
            entries.add(new RequestEntryWrapper<>(operation, serializer.size(operation)));
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            serializer.serialize(operation, new DataOutputStream(bytes));
            expected.add(Map.of(
                    "operation", variant.getClass().getSimpleName(), "kryo", Written.hex(bytes.toByteArray())));
        }
        Elasticsearch8AsyncSinkSerializer serializer = new Elasticsearch8AsyncSinkSerializer();
        byte[] data = serializer.serialize(new BufferedRequestState<>(entries));
        int restored = serializer.deserialize(serializer.getVersion(), data).getBufferedRequestEntries().size();
        if (restored != operations.length) {
            throw new IllegalStateException("restored " + restored);
        }
        Written.print("elasticsearch8-sink", args[0], "writer", serializer.getVersion(), data, expected);
    }
}
