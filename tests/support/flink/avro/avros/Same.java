package avros;

import org.apache.avro.Schema;

public class Same extends Base {
    public static final Schema SCHEMA$ = schema("Same", A, B);

    public int a;
    public CharSequence b;

    @Override
    public Schema getSchema() {
        return SCHEMA$;
    }
}
