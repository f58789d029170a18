import java.math.BigDecimal;
import java.time.LocalDate;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.UUID;
import java.util.function.Function;

/** Prints keys of classes as users write them, with their hash codes, as tests/java/hashing/hash_keys.json. */
public class HashKeys {
    enum Color { RED, GREEN, BLUE }

    record Pair(int b, String a) {}

    record Wide(String name, long id, boolean on, double ratio, short small, LocalDate day) {}

    record Outer(String tag, Pair inner) {}

    static class ObjectsHash {
        String zone; long account; boolean active;
        public int hashCode() { return Objects.hash(zone, account, active); }
    }

    static class Subset {
        String id; long version; String note;
        public int hashCode() { return id.hashCode(); }
    }

    /** As IntelliJ writes it. */
    static class Ide {
        String name; long id; boolean on; double ratio; float part; byte[] raw;
        public int hashCode() {
            int result;
            long temp;
            result = name != null ? name.hashCode() : 0;
            result = 31 * result + (int) (id ^ (id >>> 32));
            result = 31 * result + (on ? 1 : 0);
            temp = Double.doubleToLongBits(ratio);
            result = 31 * result + (int) (temp ^ (temp >>> 32));
            result = 31 * result + (part != +0.0f ? Float.floatToIntBits(part) : 0);
            result = 31 * result + Arrays.hashCode(raw);
            return result;
        }
    }

    /** As Eclipse writes it. */
    static class Prime {
        int b; Integer a; String c;
        public int hashCode() {
            final int prime = 31;
            int result = 1;
            result = prime * result + ((a == null) ? 0 : a.hashCode());
            result = prime * result + b;
            result = prime * result + ((c == null) ? 0 : c.hashCode());
            return result;
        }
    }

    /** Effective Java. */
    static class Bloch {
        short area; int prefix; int line;
        public int hashCode() {
            int result = 17;
            result = 37 * result + line;
            result = 37 * result + prefix;
            result = 37 * result + area;
            return result;
        }
    }

    /** What Lombok generates. */
    static class Lombok {
        int n; boolean flag; String text; Long big;
        public int hashCode() {
            int result = 1;
            result = result * 59 + this.n;
            result = result * 59 + (this.flag ? 79 : 97);
            Object big = this.big;
            result = result * 59 + (big == null ? 43 : big.hashCode());
            Object text = this.text;
            result = result * 59 + (text == null ? 43 : text.hashCode());
            return result;
        }
    }

    /** What HashCodeBuilder of commons computes. */
    static class Commons {
        boolean on; long id; String name;
        public int hashCode() {
            int total = 17;
            total = total * 37 + (int) (id ^ (id >> 32));
            total = total * 37 + (on ? 0 : 1);
            total = name == null ? total * 37 : total * 37 + name.hashCode();
            return total;
        }
    }

    /** A data class of Kotlin. */
    static class Data {
        String user; int shard; BigDecimal amount;
        public int hashCode() {
            int result = user.hashCode();
            result = result * 31 + Integer.hashCode(shard);
            result = result * 31 + (amount == null ? 0 : amount.hashCode());
            return result;
        }
    }

    static class Xor {
        String left; String right;
        public int hashCode() { return left.hashCode() ^ right.hashCode(); }
    }

    static class Coloured {
        String id; Color color;
        public int hashCode() { return Objects.hash(id, color.name()); }
    }

    static class Uncoloured {
        String id; Color color;
        public int hashCode() { return Objects.hash(id); }
    }

    /** Changes with each start of Java. */
    static class Identity {
        String id; Color color;
        public int hashCode() { return Objects.hash(id, color); }
    }

    /** Follows no convention. */
    static class Odd {
        String id; int n;
        public int hashCode() { return (id + "|" + n).hashCode(); }
    }

    static final Random R = new Random(7);

    static String text() { return Long.toString(Math.abs(R.nextLong()) % 1_000_000, 36); }

    static Object json(Object v) {
        if (v == null) { return "null"; }
        if (v instanceof Number && !(v instanceof BigDecimal) || v instanceof Boolean) { return v.toString(); }
        if (v instanceof byte[] raw) {
            StringBuilder s = new StringBuilder();
            for (byte b : raw) { s.append(String.format("%02x", b)); }
            return "\"" + s + "\"";
        }
        if (v instanceof Pair p) { return "[" + json(p.a()) + ", " + json(p.b()) + "]"; }
        return "\"" + v + "\"";
    }

    static boolean first = true;

    static void print(String name, int n, Function<Integer, Object[]> make) {
        System.out.print((first ? "" : ",\n") + " \"" + name + "\": [");
        first = false;
        for (int i = 0; i < n; i++) {
            Object[] made = make.apply(i);
            StringBuilder row = new StringBuilder();
            for (Object v : made) { row.append(row.length() == 0 ? "" : ", ").append(json(v)); }
            System.out.print((i == 0 ? "" : ",") + "\n  [" + row + "]");
        }
        System.out.print("\n ]");
    }

    public static void main(String[] args) {
        int n = 40;
        System.out.println("{");
        // Fields in the order of their names, as Flink's snapshots have them; the hash code last.
        print("ObjectsHash", n, i -> { var k = new ObjectsHash(); k.zone = i % 9 == 8 ? null : text(); k.account = R.nextLong(); k.active = i % 2 == 0;
            return new Object[] {k.account, k.active, k.zone, k.hashCode()}; });
        print("Pair", n, i -> { var k = new Pair(R.nextInt(), text()); return new Object[] {k.a, k.b, k.hashCode()}; });
        print("Wide", n, i -> { var k = new Wide(text(), R.nextLong(), i % 3 == 0, R.nextDouble(), (short) R.nextInt(), LocalDate.ofEpochDay(R.nextInt(30000)));
            return new Object[] {k.day.toEpochDay(), k.id, k.name, k.on, k.ratio, k.small, k.hashCode()}; });
        print("Outer", n, i -> { var k = new Outer(text(), new Pair(R.nextInt(), text())); return new Object[] {k.inner, k.tag, k.hashCode()}; });
        print("Subset", n, i -> { var k = new Subset(); k.id = text(); k.version = R.nextLong(); k.note = text();
            return new Object[] {k.id, k.note, k.version, k.hashCode()}; });
        print("Ide", n, i -> { var k = new Ide(); k.name = text(); k.id = R.nextLong(); k.on = i % 2 == 0; k.ratio = i == 3 ? -0.0 : R.nextDouble();
            k.part = i == 4 ? -0.0f : R.nextFloat(); k.raw = text().getBytes();
            return new Object[] {k.id, k.name, k.on, k.part, k.ratio, k.raw, k.hashCode()}; });
        print("Prime", n, i -> { var k = new Prime(); k.b = R.nextInt(); k.a = i % 7 == 6 ? null : R.nextInt(); k.c = i % 5 == 4 ? null : text();
            return new Object[] {k.a, k.b, k.c, k.hashCode()}; });
        print("Bloch", n, i -> { var k = new Bloch(); k.area = (short) R.nextInt(); k.prefix = R.nextInt(); k.line = R.nextInt();
            return new Object[] {k.area, k.line, k.prefix, k.hashCode()}; });
        print("Lombok", n, i -> { var k = new Lombok(); k.n = R.nextInt(); k.flag = i % 2 == 0; k.text = i % 4 == 3 ? null : text(); k.big = i % 5 == 4 ? null : R.nextLong();
            return new Object[] {k.big, k.flag, k.n, k.text, k.hashCode()}; });
        print("Commons", n, i -> { var k = new Commons(); k.on = i % 2 == 0; k.id = R.nextLong(); k.name = i % 6 == 5 ? null : text();
            return new Object[] {k.id, k.name, k.on, k.hashCode()}; });
        print("Data", n, i -> { var k = new Data(); k.user = text(); k.shard = R.nextInt(); k.amount = i % 8 == 7 ? null : BigDecimal.valueOf(R.nextLong(), i % 5);
            return new Object[] {k.amount, k.shard, k.user, k.hashCode()}; });
        print("Xor", n, i -> { var k = new Xor(); k.left = text(); k.right = text(); return new Object[] {k.left, k.right, k.hashCode()}; });
        print("Coloured", n, i -> { var k = new Coloured(); k.id = text(); k.color = Color.values()[i % 3]; return new Object[] {k.color, k.id, k.hashCode()}; });
        print("Uncoloured", n, i -> { var k = new Uncoloured(); k.id = text(); k.color = Color.values()[i % 3]; return new Object[] {k.color, k.id, k.hashCode()}; });
        print("Identity", n, i -> { var k = new Identity(); k.id = text(); k.color = Color.values()[i % 3]; return new Object[] {k.color, k.id, k.hashCode()}; });
        print("Odd", n, i -> { var k = new Odd(); k.id = text(); k.n = R.nextInt(); return new Object[] {k.id, k.n, k.hashCode()}; });
        System.out.println("\n}");
    }
}
