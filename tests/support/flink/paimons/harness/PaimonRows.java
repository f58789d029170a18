package harness;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.fs.Path;
import org.apache.paimon.fs.local.LocalFileIO;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.table.FileStoreTableFactory;
import org.apache.paimon.table.Table;
import org.apache.paimon.table.source.ReadBuilder;

/** Reads the numbers in a local table of Paimon. */
public final class PaimonRows {
    private PaimonRows() {}

    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        Table table = FileStoreTableFactory.create(LocalFileIO.create(), new Path(request.get("table").asText()));
        ReadBuilder builder = table.newReadBuilder();
        List<Long> numbers = new ArrayList<>();
        try (RecordReader<InternalRow> reader = builder.newRead().createReader(builder.newScan().plan())) {
            reader.forEachRemaining(row -> numbers.add(row.getLong(0)));
        }
        Collections.sort(numbers);
        return Values.single("numbers", numbers);
    }
}
