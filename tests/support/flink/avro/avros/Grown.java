package avros;

import org.apache.avro.Schema;

public class Grown extends Base {
    public static final Schema SCHEMA$ = schema("Grown", A, B, "{'name': 'c', 'type': 'long', 'default': 7}");

    public int a;
    public CharSequence b;
    public long c;

    @Override
    public Schema getSchema() {
        return SCHEMA$;
    }
}
