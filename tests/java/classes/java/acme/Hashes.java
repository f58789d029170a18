package acme;

import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/** Classes with {@code hashCode()} of the forms that generators write, and of forms that have no formula. */
public final class Hashes {
    private Hashes() {}

    public enum Color { RED, GREEN, BLUE }

    /** Objects.hash of fields of all kinds. */
    public static class Varargs {
        public String name;
        public long id;
        public boolean on;
        public Boolean maybe;
        public float ratio;
        public double share;
        public char letter;
        public short small;
        public byte tiny;
        public Integer boxed;

        @Override public int hashCode() {
            return Objects.hash(name, id, on, maybe, ratio, share, letter, small, tiny, boxed);
        }
    }

    public static class WithArray {
        public String name;
        public byte[] raw;
        public int[] numbers;

        @Override public int hashCode() {
            int result = Objects.hash(name);
            result = 31 * result + Arrays.hashCode(raw);
            result = 31 * result + Arrays.hashCode(numbers);
            return result;
        }
    }

    /** As older releases of IntelliJ generate it. */
    public static class Idea {
        private final String name = null;
        private long id;
        private boolean on;
        private float ratio;
        private double share;
        private Integer boxed;
        private short small;
        private byte[] raw;

        @Override public int hashCode() {
            int result;
            long temp;
            result = name != null ? name.hashCode() : 0;
            result = 31 * result + (int) (id ^ (id >>> 32));
            result = 31 * result + (on ? 1 : 0);
            result = 31 * result + (ratio != +0.0f ? Float.floatToIntBits(ratio) : 0);
            temp = Double.doubleToLongBits(share);
            result = 31 * result + (int) (temp ^ (temp >>> 32));
            result = 31 * result + (boxed != null ? boxed.hashCode() : 0);
            result = 31 * result + (int) small;
            result = 31 * result + Arrays.hashCode(raw);
            return result;
        }
    }

    /** As the oldest releases of IntelliJ generate it. */
    public static class OldIdea {
        public double share;
        public String name;

        @Override public int hashCode() {
            long temp = share != +0.0d ? Double.doubleToLongBits(share) : 0L;
            int result = (int) (temp ^ (temp >>> 32));
            result = 31 * result + (name == null ? 0 : name.hashCode());
            return result;
        }
    }

    /** As Eclipse generates it. */
    public static class Eclipse {
        public String name;
        public long id;
        public boolean on;
        public double share;
        public float ratio;

        @Override public int hashCode() {
            final int prime = 31;
            int result = 1;
            result = prime * result + (int) (id ^ (id >>> 32));
            result = prime * result + ((name == null) ? 0 : name.hashCode());
            result = prime * result + (on ? 1231 : 1237);
            result = prime * result + Float.floatToIntBits(ratio);
            long temp;
            temp = Double.doubleToLongBits(share);
            result = prime * result + (int) (temp ^ (temp >>> 32));
            return result;
        }
    }

    public static class BelowEclipse extends Eclipse {
        public int more;

        @Override public int hashCode() {
            final int prime = 31;
            int result = super.hashCode();
            result = prime * result + more;
            return result;
        }
    }

    public static class Inherits extends Eclipse { public int ignored; }

    /** As Lombok generates it. */
    public static class Lombok {
        private String text;
        private long big;
        private int n;
        private boolean flag;
        private Boolean boxed;
        private double share;
        private byte[] raw;

        public String getText() { return this.text; }
        public long getBig() { return this.big; }
        public int getN() { return this.n; }
        public boolean isFlag() { return this.flag; }
        public Boolean getBoxed() { return this.boxed; }
        public double getShare() { return this.share; }
        public byte[] getRaw() { return this.raw; }

        @Override public int hashCode() {
            final int PRIME = 59;
            int result = 1;
            final long $big = this.getBig();
            result = result * PRIME + (int) ($big >>> 32 ^ $big);
            result = result * PRIME + this.getN();
            result = result * PRIME + (this.isFlag() ? 79 : 97);
            final long $share = Double.doubleToLongBits(this.getShare());
            result = result * PRIME + (int) ($share >>> 32 ^ $share);
            final Object $boxed = this.getBoxed();
            result = result * PRIME + ($boxed == null ? 43 : $boxed.hashCode());
            final Object $text = this.getText();
            result = result * PRIME + ($text == null ? 43 : $text.hashCode());
            result = result * PRIME + Arrays.hashCode(this.getRaw());
            return result;
        }
    }

    public record Row(String name, int n, long id, boolean on, Double share, float ratio) {}

    public record Empty() {}

    public static class Xor {
        public String left;
        public String right;
        public long id;

        @Override public int hashCode() { return left.hashCode() ^ Objects.hashCode(right) ^ Long.hashCode(id); }
    }

    public static class Sum {
        public String left;
        public int right;

        @Override public int hashCode() { return Objects.hashCode(left) + right; }
    }

    public static class Weighted {
        public int a;
        public int b;
        public String c;

        @Override public int hashCode() { return 7 + 13 * a + (b << 5) - b + c.hashCode(); }
    }

    public static class Only {
        public String id;

        @Override public int hashCode() { return id == null ? 0 : id.hashCode(); }
    }

    public static class Id {
        public long id;

        @Override public int hashCode() { return Long.hashCode(id); }
    }

    public static class Constant {
        public int a;

        @Override public int hashCode() { return 42; }
    }

    public static class Helper {
        public int a;
        public String b;

        private static int mix(int h, Object o) { return 31 * h + (o == null ? 0 : o.hashCode()); }

        @Override public int hashCode() { return mix(mix(17, a), b); }
    }

    public static class Outer {
        public Row row;
        public String tag;

        @Override public int hashCode() { return Objects.hash(tag, row); }
    }

    public static class Truncated {
        public long id;

        @Override public int hashCode() { return (int) id; }
    }

    public static class Loop {
        public int[] values;

        @Override public int hashCode() {
            int h = 0;
            for (int v : values) h = 31 * h + v;
            return h;
        }
    }

    public static class Lower {
        public String name;

        @Override public int hashCode() { return name.toLowerCase().hashCode(); }
    }

    public static class Identity {
        public byte[] raw;

        @Override public int hashCode() { return Objects.hash(raw); }
    }

    public static class None { public int a; }

    public static class Cached {
        public String name;
        public transient int hash;

        @Override public int hashCode() {
            int h = hash;
            if (h == 0) { h = name.hashCode(); hash = h; }
            return h;
        }
    }

    public static class Listed {
        public List<String> names;
        public String tag;

        @Override public int hashCode() { return Objects.hash(names, tag); }
    }

    public static class Colored {
        public Color color;
        public int n;

        @Override public int hashCode() { return 31 * color.name().hashCode() + n; }
    }

    public static class Late {
        public String kept;
        public transient String lost;

        @Override public int hashCode() { return Objects.hash(kept, lost); }
    }
}
