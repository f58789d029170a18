package avros;

import org.apache.avro.Schema;

public class Narrowed extends Base {
    public static final Schema SCHEMA$ = schema("Narrowed", A, B);

    public int a;
    public CharSequence b;

    @Override
    public Schema getSchema() {
        return SCHEMA$;
    }
}
