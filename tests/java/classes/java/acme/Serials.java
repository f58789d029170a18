package acme;

import java.io.Externalizable;
import java.io.ObjectInput;
import java.io.ObjectOutput;
import java.io.ObjectStreamField;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

/** Classes whose {@code serialVersionUID} Java computes, or that declare it. */
public class Serials {
    public static class Plain implements Serializable {
        public int a;
        private String b;
        protected volatile List<String> c;
        private transient long d;
        transient int e;
        static int f;
        private static int g = 5;
    }

    public static class Declared implements Serializable {
        private static final long serialVersionUID = -42L;
        int a;
    }

    public static class DeclaredAsInt implements Serializable {
        static final int serialVersionUID = 7;
    }

    public static class NotFinal implements Serializable {
        static long serialVersionUID = 8;
    }

    public static class NotConstant implements Serializable {
        private static final long serialVersionUID = Long.parseLong("9");
    }

    protected abstract static class Base<T extends Comparable<T>> implements Serializable, Comparable<Base<T>> {
        protected T value;

        protected Base() {}

        private Base(int n) {}

        Base(String text, long[] more) {}

        abstract T get();

        synchronized void set(T... values) {}

        @Override
        public int compareTo(Base<T> other) {
            return 0;
        }

        private void hidden() {}
    }

    static final class Below extends Base<String> implements Supplier<String>, Cloneable {
        static final Below ONE = new Below();

        @Override
        public String get() {
            assert value != null;
            Runnable run = () -> System.out.println(value);
            run.run();
            return value;
        }
    }

    public class Inner implements Serializable {
        int n = Serials.this.hashCode();
        private int secret;
    }

    private static class Hidden implements Serializable {
        private int secret;
    }

    public interface Face extends Serializable {
        int LIMIT = 5;

        void touch();
    }

    public interface Empty extends Serializable {}

    public enum Color {
        RED, GREEN { }
    }

    public record Point(int x, String y) implements Serializable {}

    public record DeclaredPoint(int x) implements Serializable {
        private static final long serialVersionUID = 3L;
    }

    public static class NoSerializable {
        private NoSerializable() {}

        NoSerializable(int n) {}
    }

    public static class WithoutConstructor extends NoSerializable implements Serializable {
        public WithoutConstructor() {
            super(1);
        }
    }

    public static class More extends ArrayList<String> {
        int more;
    }

    public static class Failure extends RuntimeException {
        int code;
    }

    public static class Own implements Serializable {
        private void readObject(java.io.ObjectInputStream in) {}
    }

    public static class Persistent implements Serializable {
        private static final ObjectStreamField[] serialPersistentFields = {new ObjectStreamField("a", int.class)};
        int a;
    }

    public static class External implements Externalizable {
        @Override
        public void writeExternal(ObjectOutput out) {}

        @Override
        public void readExternal(ObjectInput in) {}
    }

    public static class Größe implements Serializable {
        public int länge;
        public String z\u00e4hler;
        public int Z, aa, a;

        public native void call(int a, String... b);

        public strictfp double sum(double a) throws Exception {
            return a;
        }

        public double sum(int a) {
            return hiddenSum() + new Hidden().secret;
        }

        private int hiddenSum() {
            return 1;
        }
    }
}
