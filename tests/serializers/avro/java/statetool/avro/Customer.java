package statetool.avro;

import java.math.BigDecimal;
import java.util.List;
import java.util.Map;
import org.apache.avro.reflect.Nullable;

/** A plain class that Avro takes apart by reflection. */
public class Customer {
    public enum Rank { BRONZE, SILVER }

    public static class Address {
        public String street;
        @Nullable public Integer number;
    }

    public boolean active;
    public short small;
    public int number;
    public long big;
    public float ratio;
    public double exact;
    public String name;
    @Nullable public String nick;
    public byte[] raw;
    public int[] scores;
    public List<String> words;
    public Map<String, Address> places;
    public Rank rank;
    public BigDecimal worth;
    @Nullable public Address home;
}
