package avros;

import org.apache.avro.Schema;

public class Renamed extends Base {
    public static final Schema SCHEMA$ = schema("Renamed", A, "{'name': 'z', 'type': 'string', 'aliases': ['b']}");

    public int a;
    public CharSequence z;

    @Override
    public Schema getSchema() {
        return SCHEMA$;
    }
}
