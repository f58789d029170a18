package evolved;

import java.io.Serializable;

/** Classes that Java serialization writes, as the old job had them; {@code java/evolved} has those of the new job. */
public final class Serialized {
    private Serialized() {}

    /** A value of a class. */
    public static Object of(String name, int n) throws Exception {
        return Changed.fill(Class.forName(name), n);
    }

    public static final class Same implements Serializable {
        public int a;
        public String b;
    }

    public static final class FieldsChanged implements Serializable {
        private static final long serialVersionUID = 1;
        public int a;
        public String b;
    }

    public static final class UidChanged implements Serializable {
        private static final long serialVersionUID = 1;
        public int a;
    }

    public static final class Computed implements Serializable {
        public int a;
    }

    public static final class ComputedSame implements Serializable {
        public int a;

        public int twice() {
            return 2 * a;
        }
    }

    public static final class Retyped implements Serializable {
        private static final long serialVersionUID = 1;
        public int a;
    }

    public static final class Boxed implements Serializable {
        private static final long serialVersionUID = 1;
        public Integer a;
    }

    public static final class NoMore implements Serializable {
        public int a;
    }

    public static final class ToRecord implements Serializable {
        private static final long serialVersionUID = 1;
        public int a;
        public String b;
    }

    public enum Color {
        RED, GREEN, BLUE
    }

    public static final class LostConstant implements Serializable {
        private static final long serialVersionUID = 1;
        public Color color;
    }

    public static final class Widened implements Serializable {
        private static final long serialVersionUID = 1;
        public String a;
    }

    public static final class NewBase implements Serializable {
        private static final long serialVersionUID = 1;
        public int a;
    }

    public static class FormerBase implements Serializable {
        private static final long serialVersionUID = 1;
        public int more;
    }

    public static final class LostBase extends FormerBase {
        private static final long serialVersionUID = 1;
        public int a;
    }

    public static final class NewPlainBase implements Serializable {
        private static final long serialVersionUID = 1;
        public int a;
    }

    public static final class WithoutConstructor implements Serializable {
        private static final long serialVersionUID = 1;
        public int a;
    }

    public static final class Inner implements Serializable {
        public int a;
    }

    public static final class Nested implements Serializable {
        private static final long serialVersionUID = 1;
        public int n;
        public Inner inner;
    }

    public static final class Resolved implements Serializable {
        private static final long serialVersionUID = 1;
        public int a;
    }

    public enum Enum {
        RED, GREEN, BLUE
    }

    public static final class Transient implements Serializable {
        private static final long serialVersionUID = 1;
        public int a;
        public transient int b;
    }
}
