package jarred;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/** Key classes with generated {@code hashCode()} methods. */
public final class Keys {
    private Keys() {}

    /** Some accounts. */
    public static List<Object> keys() {
        List<Object> keys = new ArrayList<>();
        for (int n = 0; n < 40; n++) keys.add(new Account(n % 4 == 0 ? null : "o" + n, n % 3 == 0, (long) n << 35));
        return keys;
    }

    /** A POJO, as older releases of IntelliJ complete it. */
    public static class Shop {
        public boolean open;
        public long id;
        public String name;
        public double share;

        @Override public boolean equals(Object o) {
            return o instanceof Shop && ((Shop) o).id == id && Objects.equals(name, ((Shop) o).name) && ((Shop) o).open == open;
        }

        @Override public int hashCode() {
            int result = name != null ? name.hashCode() : 0;
            result = 31 * result + (int) (id ^ (id >>> 32));
            result = 31 * result + (open ? 1 : 0);
            long temp = Double.doubleToLongBits(share);
            result = 31 * result + (int) (temp ^ (temp >>> 32));
            return result;
        }
    }

    /** A class that only Kryo can write, with a hash code like that of Lombok. */
    public static class Account {
        private final String owner;
        private final boolean closed;
        private final long number;

        private Account() { this(null, false, 0); }

        public Account(String owner, boolean closed, long number) {
            this.owner = owner;
            this.closed = closed;
            this.number = number;
        }

        @Override public boolean equals(Object o) {
            return o instanceof Account && ((Account) o).number == number && Objects.equals(owner, ((Account) o).owner) && ((Account) o).closed == closed;
        }

        @Override public int hashCode() {
            int result = 1;
            result = result * 59 + (closed ? 79 : 97);
            result = result * 59 + (int) (number >>> 32 ^ number);
            result = result * 59 + (owner == null ? 43 : owner.hashCode());
            return result;
        }
    }

    /** A record, which Flink writes as a POJO. */
    public record Place(String city, int zone, Long block) {}
}
