package acme.commons;

import org.apache.commons.lang3.builder.HashCodeBuilder;

/** Keys whose {@code hashCode()} Apache Commons computes. */
public final class Commons {
    public static class Usual {
        public String name;
        public long id;
        public boolean on;
        public Boolean maybe;
        public double share;
        public float ratio;
        public int n;

        @Override public int hashCode() {
            return new HashCodeBuilder().append(id).append(on).append(name).append(maybe).append(share).append(ratio).append(n).toHashCode();
        }
    }

    public static class Numbered extends Usual {
        public short more;

        @Override public int hashCode() {
            return new HashCodeBuilder(11, 41).appendSuper(super.hashCode()).append(more).build();
        }
    }

    public static class Same extends Usual {
        @Override public int hashCode() { return new HashCodeBuilder(11, 41).append(name).append(n).hashCode(); }
    }

    public static class Array {
        public byte[] raw;

        @Override public int hashCode() { return new HashCodeBuilder().append(raw).toHashCode(); }
    }
}
