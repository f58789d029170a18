package avros;

import org.apache.avro.Schema;

public class Undefaulted extends Base {
    public static final Schema SCHEMA$ = schema("Undefaulted", A, B, "{'name': 'c', 'type': 'long'}");

    public int a;
    public CharSequence b;
    public long c;

    @Override
    public Schema getSchema() {
        return SCHEMA$;
    }
}
