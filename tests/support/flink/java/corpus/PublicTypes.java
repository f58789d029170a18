package corpus;

import java.math.BigDecimal;
import java.time.LocalDate;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.UUID;

/** The types of the corpora's jobs, rebuilt from what their snapshots say: names and fields must be the same. */
public final class PublicTypes {
    private PublicTypes() {}

    public enum Color { RED, GREEN, BLUE, AMBER }

    public static class Address {
        public String city;
        public Integer number;
        public String street;
    }

    public static class Pet {
        public int legs;
        public String name;
    }

    public static class Dog extends Pet {
        public boolean barks;
    }

    public static class Cat extends Pet {
        public long lives;
        public String owner;
    }

    /** Not a POJO: no constructor without arguments that Flink may call, so Kryo writes it. */
    public static class Money {
        private long cents;
        private String currency;

        private Money() {}
    }

    /** A POJO with the fields of {@link Money}. */
    public static class Cash {
        public long cents;
        public String currency;
    }

    public static class ShopKey {
        public int account;
        public boolean active;
        public String zone;

        @Override
        public boolean equals(Object o) {
            return o instanceof ShopKey && ((ShopKey) o).account == account && ((ShopKey) o).active == active
                    && Objects.equals(((ShopKey) o).zone, zone);
        }

        @Override
        public int hashCode() {
            return Objects.hash(zone, account, active);
        }
    }

    public static class Order {
        public Address address;
        public int[] codes;
        public Color color;
        public String customer;
        public LocalDate day;
        public Set<String> flags;
        public long id;
        public Money money;
        public boolean paid;
        public Pet pet;
        public BigDecimal price;
        public Map<String, Integer> quantities;
        public Integer rating;
        public List<String> tags;
        public UUID token;
    }
}
