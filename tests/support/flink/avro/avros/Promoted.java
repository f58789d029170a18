package avros;

import org.apache.avro.Schema;

public class Promoted extends Base {
    public static final Schema SCHEMA$ = schema("Promoted", "{'name': 'a', 'type': 'long'}", B);

    public long a;
    public CharSequence b;

    @Override
    public Schema getSchema() {
        return SCHEMA$;
    }
}
