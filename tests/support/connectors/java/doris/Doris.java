package writing;

import java.lang.reflect.Constructor;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.doris.flink.sink.DorisCommittable;
import org.apache.doris.flink.sink.copy.CopyCommittableSerializer;
import org.apache.doris.flink.sink.copy.DorisCopyCommittable;
import org.apache.doris.flink.sink.writer.DorisWriterState;
import org.apache.doris.flink.sink.writer.DorisWriterStateSerializer;
import org.apache.flink.core.io.SimpleVersionedSerializer;

/** States of the Doris sink, by its own serializers. */
public final class Doris {
    private static final String RELEASE = "25.0.0";

    @SuppressWarnings("unchecked")
    public static void main(String[] args) throws Exception {
        Constructor<?> constructor =
                Class.forName("org.apache.doris.flink.sink.DorisCommittableSerializer").getDeclaredConstructor();
        constructor.setAccessible(true);
        SimpleVersionedSerializer<DorisCommittable> committables =
                (SimpleVersionedSerializer<DorisCommittable>) constructor.newInstance();
        for (String host : new String[] {"10.0.0.1:8040", "be-1.doris.svc.cluster.local:8040"}) {
            Map<String, Object> expected = new LinkedHashMap<>();
            expected.put("host_port", host);
            expected.put("database", "shop");
            expected.put("transaction_id", 123456789012L);
            Written.print("doris-sink", RELEASE, "committable", committables.getVersion(),
                    committables.serialize(new DorisCommittable(host, "shop", 123456789012L)), expected);
        }

        CopyCommittableSerializer copies = new CopyCommittableSerializer();
        String sql = "COPY INTO `shop.orders` FROM @~('{label_orders_0_7_1}')";
        Map<String, Object> copy = new LinkedHashMap<>();
        copy.put("host_port", "10.0.0.1:8030");
        copy.put("copy_sql", sql);
        Written.print("doris-copy-sink", RELEASE, "committable", copies.getVersion(),
                copies.serialize(new DorisCopyCommittable("10.0.0.1:8030", sql)), copy);

        DorisWriterStateSerializer writers = new DorisWriterStateSerializer();
        Map<String, Object> writer = new LinkedHashMap<>();
        writer.put("label_prefix", "orders-to-doris");
        writer.put("database", "shop");
        writer.put("table", "orders");
        writer.put("subtask_id", 3);
        Written.print("doris-sink", RELEASE, "writer", writers.getVersion(),
                writers.serialize(new DorisWriterState("orders-to-doris", "shop", "orders", 3)), writer);
    }
}
