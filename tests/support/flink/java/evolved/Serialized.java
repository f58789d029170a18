package evolved;

import java.io.Serializable;

/** Classes that Java serialization writes, as the new job has them; {@code before/evolved} has those of the old job. */
public final class Serialized {
    private Serialized() {}

    public static final class Same implements Serializable {
        public int a;
        public String b;
    }

    public static final class FieldsChanged implements Serializable {
        private static final long serialVersionUID = 1;
        public int a;
        public long c;
    }

    public static final class UidChanged implements Serializable {
        private static final long serialVersionUID = 2;
        public int a;
    }

    public static final class Computed implements Serializable {
        public int a;

        public int twice() {
            return 2 * a;
        }
    }

    public static final class ComputedSame implements Serializable {
        public int a;

        public int twice() {
            return sum();
        }

        private int sum() {
            return a + a;
        }
    }

    public static final class Retyped implements Serializable {
        private static final long serialVersionUID = 1;
        public long a;
    }

    public static final class Boxed implements Serializable {
        private static final long serialVersionUID = 1;
        public int a;
    }

    public static final class NoMore {
        public int a;
    }

    public record ToRecord(int a, String b) implements Serializable {}

    public enum Color {
        RED
    }

    public static final class LostConstant implements Serializable {
        private static final long serialVersionUID = 1;
        public Color color;
    }

    public static final class Widened implements Serializable {
        private static final long serialVersionUID = 1;
        public Object a;
    }

    public static class Base implements Serializable {
        public int more;
    }

    public static final class NewBase extends Base {
        private static final long serialVersionUID = 1;
        public int a;
    }

    public static class FormerBase implements Serializable {
        private static final long serialVersionUID = 1;
        public int more;
    }

    public static final class LostBase implements Serializable {
        private static final long serialVersionUID = 1;
        public int a;
    }

    public static class PlainBase {}

    public static final class NewPlainBase extends PlainBase implements Serializable {
        private static final long serialVersionUID = 1;
        public int a;
    }

    public static class BaseWithoutConstructor {
        public BaseWithoutConstructor(int n) {}
    }

    public static final class WithoutConstructor extends BaseWithoutConstructor implements Serializable {
        private static final long serialVersionUID = 1;
        public int a;

        public WithoutConstructor() {
            super(1);
        }
    }

    public static final class Inner implements Serializable {
        public int a;
        public int b;
    }

    public static final class Nested implements Serializable {
        private static final long serialVersionUID = 1;
        public int n;
        public Inner inner;
    }

    public static final class Resolved implements Serializable {
        private static final long serialVersionUID = 1;
        public int a;

        private Object readResolve() {
            a++;
            return this;
        }
    }

    public enum Enum {
        BLUE, GREEN, RED
    }

    public static final class Transient implements Serializable {
        private static final long serialVersionUID = 1;
        public int a;
        public int b;
    }
}
