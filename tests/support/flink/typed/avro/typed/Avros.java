package typed;

import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.generic.IndexedRecord;
import org.apache.avro.specific.SpecificRecord;
import org.apache.avro.specific.SpecificRecordBase;
import org.apache.flink.api.java.tuple.Tuple2;

/** Records of Avro as fields. */
public class Avros {
    /** As Avro's compiler generates it. */
    public static class Line extends SpecificRecordBase implements SpecificRecord {
        public static final Schema SCHEMA$ = new Schema.Parser().parse(
            "{\"type\":\"record\",\"name\":\"Line\",\"namespace\":\"typed.Avros$\",\"fields\":[{\"name\":\"item\",\"type\":\"string\"},{\"name\":\"count\",\"type\":[\"null\",\"int\"],\"default\":null}]}");
        private CharSequence item;
        private Integer count;
        public Line() { }
        @Override public Schema getSchema() { return SCHEMA$; }
        public static Schema getClassSchema() { return SCHEMA$; }
        @Override public Object get(int field) { return field == 0 ? item : count; }
        @Override public void put(int field, Object value) { }
        public CharSequence getItem() { return item; } public void setItem(CharSequence v) { item = v; }
        public Integer getCount() { return count; } public void setCount(Integer v) { count = v; }
    }

    public enum Kind { A, B; public static final Schema SCHEMA$ = null; }

    public static class Holder {
        public Line line; public GenericRecord generic; public SpecificRecord specific; public IndexedRecord indexed;
        public Line[] lines; public List<Line> list; public Map<String, Line> map; public Tuple2<Line, String> tuple; public Kind kind;
        public Generics.Box<Line> box; public Schema schema; public org.apache.avro.util.Utf8 utf8;
    }
}
