package avros;

import org.apache.avro.Schema;

public class Nullable extends Base {
    public static final Schema SCHEMA$ = schema("Nullable", A, "{'name': 'b', 'type': ['null', 'string']}");

    public int a;
    public CharSequence b;

    @Override
    public Schema getSchema() {
        return SCHEMA$;
    }
}
