package writing;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.connector.jdbc.core.datastream.sink.committer.JdbcCommitable;
import org.apache.flink.connector.jdbc.core.datastream.sink.committer.JdbcCommitableSerializer;
import org.apache.flink.connector.jdbc.core.datastream.sink.writer.JdbcWriterState;
import org.apache.flink.connector.jdbc.core.datastream.sink.writer.JdbcWriterStateSerializer;
import org.apache.flink.connector.jdbc.core.datastream.source.enumerator.JdbcSourceEnumStateSerializer;
import org.apache.flink.connector.jdbc.core.datastream.source.enumerator.JdbcSourceEnumeratorState;
import org.apache.flink.connector.jdbc.core.datastream.source.split.CheckpointedOffset;
import org.apache.flink.connector.jdbc.core.datastream.source.split.JdbcSourceSplit;
import org.apache.flink.connector.jdbc.core.datastream.source.split.JdbcSourceSplitSerializer;
import org.apache.flink.connector.jdbc.datasource.transactions.xa.domain.TransactionId;

/** States of JDBC's source and sink, by their own serializers. */
public final class Jdbc {
    private static final String RELEASE = "3.3.0";
    private static final String SQL = "SELECT * FROM orders WHERE id BETWEEN ? AND ?";

    public static void main(String[] args) throws Exception {
        JdbcSourceSplitSerializer splits = new JdbcSourceSplitSerializer();
        List<JdbcSourceSplit> all = new ArrayList<>();
        all.add(new JdbcSourceSplit("0000000001", SQL, new Serializable[] {1L, 100L}, new CheckpointedOffset(12, 0)));
        all.add(new JdbcSourceSplit("0000000002", SQL, new Serializable[] {101L, 200L}, null));
        all.add(new JdbcSourceSplit("0000000003", "SELECT * FROM things", null, new CheckpointedOffset(3, 1)));
        Object[][] positions = {{"12", 0}, {null, null}, {"3", 1}};
        for (int i = 0; i < all.size(); i++) {
            Map<String, Object> expected = new LinkedHashMap<>();
            expected.put("split_id", all.get(i).splitId());
            expected.put("sql", all.get(i).getSqlTemplate());
            expected.put("parameters", all.get(i).getParameters());
            expected.put("position", positions[i][0]);
            expected.put("records_after_offset", positions[i][1]);
            Written.print("jdbc-source", RELEASE, "split", splits.getVersion(), splits.serialize(all.get(i)), expected);
        }
        JdbcSourceEnumStateSerializer states = new JdbcSourceEnumStateSerializer(splits);
        Map<String, Object> expected = new LinkedHashMap<>();
        expected.put("splits", Arrays.asList(Arrays.asList("0000000001", "finished"),
                Arrays.asList("0000000002", "assigned"), Arrays.asList("0000000003", "unassigned")));
        expected.put("splitter_state", "user-state");
        Written.print("jdbc-source", RELEASE, "enumerator", states.getVersion(), states.serialize(new JdbcSourceEnumeratorState(
                all.subList(0, 1), all.subList(1, 2), all.subList(2, 3), "user-state")), expected);

        byte[] job = new byte[16];
        Arrays.fill(job, (byte) 0xab);
        TransactionId first = TransactionId.restore(job, 1, 4, 7, 0);
        TransactionId second = TransactionId.restore(job, 1, 4, 8, 2);
        JdbcCommitableSerializer committables = new JdbcCommitableSerializer();
        Map<String, Object> committable = new LinkedHashMap<>();
        committable.put("format_id", first.getFormatId());
        committable.put("global_transaction_id", Written.hex(first.getGlobalTransactionId()));
        committable.put("branch_qualifier", Written.hex(first.getBranchQualifier()));
        Written.print("jdbc-sink", RELEASE, "committable", committables.getVersion(),
                committables.serialize(JdbcCommitable.of(first)), committable);
        JdbcWriterStateSerializer writers = new JdbcWriterStateSerializer();
        Map<String, Object> writer = new LinkedHashMap<>();
        writer.put("hanging", Collections.singletonList(transaction(7, 0)));
        writer.put("prepared", Collections.singletonList(transaction(8, 2)));
        // The arguments are the prepared and the hanging ones.
        Written.print("jdbc-sink", RELEASE, "writer", writers.getVersion(), writers.serialize(
                JdbcWriterState.of(Collections.singletonList(second), Collections.singletonList(first))), writer);
    }

    private static Map<String, Object> transaction(long checkpoint, int attempts) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("job_id", "abababababababababababababababab");
        fields.put("subtask", 1);
        fields.put("number_of_subtasks", 4);
        fields.put("checkpoint_id", checkpoint);
        fields.put("attempts", attempts);
        return fields;
    }
}
