package avros;

import org.apache.avro.Schema;

public class Retyped extends Base {
    public static final Schema SCHEMA$ = schema("Retyped", "{'name': 'a', 'type': 'string'}", B);

    public CharSequence a;
    public CharSequence b;

    @Override
    public Schema getSchema() {
        return SCHEMA$;
    }
}
