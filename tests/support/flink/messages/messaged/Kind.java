package messaged;

import org.apache.thrift.TEnum;

/** A Thrift enum as its compiler generates it: the numbers are not the ordinals. */
public enum Kind implements TEnum {
    SMALL(1),
    LARGE(500);

    private final int value;

    private Kind(int value) {
        this.value = value;
    }

    @Override public int getValue() { return value; }
}
