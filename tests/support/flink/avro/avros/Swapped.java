package avros;

import org.apache.avro.Schema;

public class Swapped extends Base {
    public static final Schema SCHEMA$ = schema("Swapped", B, A);

    public CharSequence b;
    public int a;

    @Override
    public Schema getSchema() {
        return SCHEMA$;
    }
}
