package avrorecords;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.specific.SpecificRecordBase;
import org.apache.avro.util.Utf8;

/** Records of Avro, with the fields that Avro's compiler generates. */
public final class Records {
    private Records() {}

    private static Schema parsed(String text) {
        return new Schema.Parser().parse(text);
    }

    public enum Color {
        RED, BLUE;

        public static final Schema SCHEMA$ =
                parsed("{\"type\": \"enum\", \"name\": \"Color\", \"namespace\": \"avrorecords.Records$\", \"symbols\": [\"RED\", \"BLUE\"]}");

        public Schema getSchema() {
            return SCHEMA$;
        }
    }

    /** A record whose texts are CharSequences, as by default. */
    public static class Line extends SpecificRecordBase {
        private static final long serialVersionUID = 1L;
        public static final Schema SCHEMA$ = parsed(
                "{\"type\": \"record\", \"name\": \"Line\", \"namespace\": \"avrorecords.Records$\", \"fields\": ["
                        + "{\"name\": \"item\", \"type\": \"string\"}, {\"name\": \"count\", \"type\": \"int\"}]}");
        private CharSequence item;
        private int count;

        public Line() {}

        public Line(CharSequence item, int count) {
            this.item = item;
            this.count = count;
        }

        @Override
        public Schema getSchema() {
            return SCHEMA$;
        }

        @Override
        public Object get(int field) {
            return field == 0 ? item : count;
        }

        @Override
        public void put(int field, Object value) {
            if (field == 0) item = (CharSequence) value;
            else count = (Integer) value;
        }
    }

    /** A record with a field of each type; texts are Strings (stringType). */
    public static class Order extends SpecificRecordBase {
        private static final long serialVersionUID = 2L;
        public static final Schema SCHEMA$ = parsed(
                "{\"type\": \"record\", \"name\": \"Order\", \"namespace\": \"avrorecords.Records$\", \"fields\": ["
                        + "{\"name\": \"id\", \"type\": \"long\"}, {\"name\": \"name\", \"type\": [\"null\", \"string\"]},"
                        + "{\"name\": \"open\", \"type\": \"boolean\"}, {\"name\": \"share\", \"type\": \"double\"},"
                        + "{\"name\": \"color\", \"type\": " + Color.SCHEMA$ + "},"
                        + "{\"name\": \"first\", \"type\": " + Line.SCHEMA$ + "},"
                        + "{\"name\": \"lines\", \"type\": {\"type\": \"array\", \"items\": \"avrorecords.Records$.Line\"}},"
                        + "{\"name\": \"counts\", \"type\": {\"type\": \"map\", \"values\": \"long\"}},"
                        + "{\"name\": \"raw\", \"type\": [\"null\", \"bytes\"]},"
                        + "{\"name\": \"either\", \"type\": [\"int\", \"string\"]}]}");
        private long id;
        private String name;
        private boolean open;
        private double share;
        private Color color;
        private Line first;
        private List<Line> lines;
        private Map<String, Long> counts;
        private ByteBuffer raw;
        private Object either;

        public Order() {}

        @Override
        public Schema getSchema() {
            return SCHEMA$;
        }

        @Override
        public Object get(int field) {
            return new Object[] {id, name, open, share, color, first, lines, counts, raw, either}[field];
        }

        @Override
        @SuppressWarnings("unchecked")
        public void put(int field, Object value) {
            switch (field) {
                case 0: id = (Long) value; break;
                case 1: name = (String) value; break;
                case 2: open = (Boolean) value; break;
                case 3: share = (Double) value; break;
                case 4: color = (Color) value; break;
                case 5: first = (Line) value; break;
                case 6: lines = (List<Line>) value; break;
                case 7: counts = (Map<String, Long>) value; break;
                case 8: raw = (ByteBuffer) value; break;
                default: either = value;
            }
        }
    }

    private static Order order(Object either, boolean isRead) {
        Order order = new Order();
        Schema schema = Order.SCHEMA$;
        List<Line> lines = Arrays.asList(new Line(new Utf8("a"), 1), new Line("b", 2));
        Map<String, Long> counts = new HashMap<>(Collections.singletonMap("x", 5L));
        // Avro's reader makes GenericData.Array, which Flink registers with Kryo.
        lines = isRead ? new GenericData.Array<>(schema.getField("lines").schema(), lines) : new ArrayList<>(lines);
        Object[] parts = {1L << 40, isRead ? "n" : null, true, 0.25, Color.BLUE, lines.get(0), lines, counts, null, either};
        for (int i = 0; i < parts.length; i++) order.put(i, parts[i]);
        return order;
    }

    public static Map<String, Object> all() {
        Map<String, Object> all = new LinkedHashMap<>();
        all.put("Line", new Line("text", 7));
        all.put("Utf8", new Line(new Utf8("utf8"), 8));
        all.put("Order", order("text", false));
        all.put("Read", order(5, true));
        return all;
    }

    public static Map<String, Object> generic() {
        GenericData.Record record = new GenericData.Record(Line.SCHEMA$);
        record.put("item", new Utf8("generic"));
        record.put("count", 9);
        return new LinkedHashMap<>(Collections.singletonMap("Generic", record));
    }
}
