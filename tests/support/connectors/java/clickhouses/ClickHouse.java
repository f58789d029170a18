package writing;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.ZonedDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.flink.connector.base.sink.writer.BufferedRequestState;
import org.apache.flink.connector.base.sink.writer.RequestEntryWrapper;
import org.apache.flink.connector.clickhouse.data.ClickHousePayload;
import org.apache.flink.connector.clickhouse.sink.ClickHouseAsyncSinkSerializer;

/** Writers' states of ClickHouse's sink, by its own serializer. */
public final class ClickHouse {
    public static void main(String[] args) throws Exception {
        List<RequestEntryWrapper<ClickHousePayload>> entries = new ArrayList<>();
        List<Object> expected = new ArrayList<>();
        Map<String, Object> row = new LinkedHashMap<>();
        Map<String, Object> shown = new LinkedHashMap<>();
        add(row, shown, "none", null, null);
        add(row, shown, "open", true, true);
        add(row, shown, "byte", (byte) -7, -7);
        add(row, shown, "short", (short) 700, 700);
        add(row, shown, "int", 70_000, 70_000);
        add(row, shown, "long", 1L << 40, 1L << 40);
        add(row, shown, "float", 1.5f, 1.5);
        add(row, shown, "double", Double.NEGATIVE_INFINITY, "-inf");
        add(row, shown, "big", BigInteger.TWO.pow(90).negate(), BigInteger.TWO.pow(90).negate());
        add(row, shown, "price", new BigDecimal("-12.50"), "-12.50");
        add(row, shown, "größe", "XL \uD83D\uDE00", "XL \uD83D\uDE00");
        add(row, shown, "bytes", new byte[] {0, (byte) 0xff}, "00ff");
        add(row, shown, "id", new UUID(1, -2), new UUID(1, -2).toString());
        add(row, shown, "day", LocalDate.of(1969, 12, 31), "1969-12-31");
        add(row, shown, "local", LocalDateTime.of(2026, 1, 2, 3, 4, 5, 6_000_000), "2026-01-02T03:04:05.006");
        ZonedDateTime zoned = ZonedDateTime.of(2026, 1, 2, 3, 4, 5, 0, ZoneId.of("Europe/Berlin"));
        add(row, shown, "zoned", zoned, "2026-01-02T02:04:05Z[Europe/Berlin]");
        add(row, shown, "list", Arrays.asList(1, null), Arrays.asList(1, null));
        add(row, shown, "map", Map.of("a", List.of("b")), Map.of("a", List.of("b")));
        add(row, shown, "tuple", new Object[] {"x", 2}, List.of("x", 2));
        entries.add(new RequestEntryWrapper<>(ClickHousePayload.ofData(row), 100));
        expected.add(Map.of("row", shown));
        // The size of a restored request is not known.
        entries.add(new RequestEntryWrapper<>(ClickHousePayload.ofData(Map.of("id", 1)), -1));
        expected.add(Map.of("row", Map.of("id", 1)));
        byte[] csv = "1,Größe\n".getBytes(StandardCharsets.UTF_8);
        entries.add(new RequestEntryWrapper<>(ClickHousePayload.ofRaw(csv), csv.length));
        expected.add(Map.of("text", "1,Größe\n"));
        ClickHouseAsyncSinkSerializer serializer = new ClickHouseAsyncSinkSerializer(false);
        Written.print("clickhouse-sink", args[0], "writer", serializer.getVersion(),
                serializer.serialize(new BufferedRequestState<>(entries)), expected);
    }

    private static void add(Map<String, Object> row, Map<String, Object> shown, String name, Object value, Object seen) {
        row.put(name, value);
        shown.put(name, seen);
    }
}
