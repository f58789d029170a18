package avros;

import org.apache.avro.Schema;

public class Front extends Base {
    public static final Schema SCHEMA$ = schema("Front", "{'name': 'c', 'type': 'long', 'default': 7}", A, B);

    public long c;
    public int a;
    public CharSequence b;

    @Override
    public Schema getSchema() {
        return SCHEMA$;
    }
}
