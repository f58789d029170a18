package writing;

import com.ververica.cdc.debezium.internal.DebeziumOffset;
import com.ververica.cdc.debezium.internal.DebeziumOffsetSerializer;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

/** Offsets of Debezium's source function, by its own serializer. */
public final class Debezium {
    public static void main(String[] args) throws Exception {
        Map<String, Object> mysql = new LinkedHashMap<>();
        mysql.put("ts_sec", 1700000777L);
        mysql.put("file", "binlog.000003");
        mysql.put("pos", 4L);
        print("mysql_binlog_source", mysql, "{\"file\": \"binlog.000003\", \"pos\": 4, \"ts_sec\": 1700000777}", 1700000777000L);
        Map<String, Object> postgres = new LinkedHashMap<>();
        postgres.put("lsn", 23876504L);
        postgres.put("ts_usec", 1700000777123456L);
        print("Größe", postgres, "{\"lsn\": 23876504, \"ts_usec\": 1700000777123456}", 1700000777123L);
    }

    private static void print(String server, Map<String, Object> position, String text, long time) throws Exception {
        DebeziumOffset offset = new DebeziumOffset();
        offset.setSourcePartition(Collections.singletonMap("server", server));
        offset.setSourceOffset(position);
        Map<String, Object> expected = new LinkedHashMap<>();
        expected.put("split_id", server);
        expected.put("position", text);
        expected.put("time_ms", time);
        Written.print("debezium-source-function", "2.3.0", "element", 0,
                DebeziumOffsetSerializer.INSTANCE.serialize(offset), expected);
    }
}
