package acme.lombok;

import lombok.AccessLevel;
import lombok.AllArgsConstructor;
import lombok.Data;
import lombok.EqualsAndHashCode;
import lombok.Value;

/** Keys whose {@code hashCode()} Lombok generates. */
public final class Lombok {
    @Data
    public static class Full {
        private String text;
        private long big;
        private int n;
        private boolean flag;
        private Boolean maybe;
        private float ratio;
        private double share;
        private Double boxed;
        private short small;
        private char letter;
        private byte[] raw;
        private int[] numbers;
        private String last;
    }

    @Value
    @AllArgsConstructor(access = AccessLevel.PUBLIC)
    public static class Fixed {
        long id;
        String name;
    }

    @Data
    @EqualsAndHashCode(doNotUseGetters = true, exclude = "out")
    public static class Partial {
        private String in;
        private String out;
    }

    @Data
    @EqualsAndHashCode(callSuper = true)
    public static class Below extends Partial {
        private int n;
    }
}
