package writing;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.apache.flink.connector.base.sink.writer.BufferedRequestState;
import org.apache.flink.connector.base.sink.writer.RequestEntryWrapper;
import org.apache.flink.connector.clickhouse.data.ClickHousePayload;
import org.apache.flink.connector.clickhouse.sink.ClickHouseAsyncSinkSerializer;

/** A writer's state of ClickHouse's sink before rows, by its own serializer. */
public final class OldClickHouse {
    public static void main(String[] args) throws Exception {
        byte[] csv = "1,Größe\n".getBytes(StandardCharsets.UTF_8);
        byte[] binary = {0, 1, (byte) 0xff};
        ClickHouseAsyncSinkSerializer serializer = new ClickHouseAsyncSinkSerializer();
        Written.print("clickhouse-sink", args[0], "writer", serializer.getVersion(),
                serializer.serialize(new BufferedRequestState<>(List.of(
                        new RequestEntryWrapper<>(new ClickHousePayload(csv), csv.length),
                        new RequestEntryWrapper<>(new ClickHousePayload(binary), binary.length)))),
                List.of(Map.of("text", "1,Größe\n"), Map.of("data", "0001ff")));
    }
}
