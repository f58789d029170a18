package avros;

import org.apache.avro.Schema;

public class Documented extends Base {
    public static final Schema SCHEMA$ = schema("Documented", A, "{'name': 'b', 'type': 'string', 'doc': 'its text'}");

    public int a;
    public CharSequence b;

    @Override
    public Schema getSchema() {
        return SCHEMA$;
    }
}
