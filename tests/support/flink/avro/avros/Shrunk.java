package avros;

import org.apache.avro.Schema;

public class Shrunk extends Base {
    public static final Schema SCHEMA$ = schema("Shrunk", A);

    public int a;

    @Override
    public Schema getSchema() {
        return SCHEMA$;
    }
}
