package statetool.avro;

import org.apache.avro.Schema;
import org.apache.avro.generic.GenericEnumSymbol;

/** The enum of {@link Payment}. */
public enum Kind implements GenericEnumSymbol<Kind> {
    CARD, CASH, GIFT;

    @Override
    public Schema getSchema() {
        return Payment.SCHEMA$.getField("kind").schema();
    }
}
