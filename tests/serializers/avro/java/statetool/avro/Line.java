package statetool.avro;

import org.apache.avro.Schema;
import org.apache.avro.specific.SpecificRecordBase;

/** A line of a {@link Payment}. */
public class Line extends SpecificRecordBase {
    public static final Schema SCHEMA$ = Payment.SCHEMA$.getField("lines").schema().getElementType();
    public String sku;
    public int count;

    public Line() {}

    Line(String sku, int count) {
        this.sku = sku;
        this.count = count;
    }

    @Override
    public Schema getSchema() {
        return SCHEMA$;
    }

    @Override
    public Object get(int field) {
        return field == 0 ? sku : (Object) count;
    }

    @Override
    public void put(int field, Object value) {
        if (field == 0) {
            sku = value.toString();
        } else {
            count = (Integer) value;
        }
    }
}
