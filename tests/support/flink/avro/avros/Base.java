package avros;

import org.apache.avro.Schema;
import org.apache.avro.specific.SpecificRecordBase;

/** What a class generated from a schema is, as far as Flink and Avro look at it: {@code pair_avro.py} has the schemas of the old job. */
public abstract class Base extends SpecificRecordBase {
    static final String A = "{'name': 'a', 'type': 'int'}";
    static final String B = "{'name': 'b', 'type': 'string'}";

    static Schema schema(String name, String... fields) {
        String text = "{'type': 'record', 'name': 'avros." + name + "', 'fields': [" + String.join(", ", fields) + "]}";
        return new Schema.Parser().parse(text.replace('\'', '"'));
    }

    @Override
    public Object get(int field) {
        try {
            return getClass().getField(getSchema().getFields().get(field).name()).get(this);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public void put(int field, Object value) {
        try {
            getClass().getField(getSchema().getFields().get(field).name()).set(this, value);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }
}
