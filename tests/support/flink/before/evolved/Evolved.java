package evolved;

/** Classes as the old job has them, and values of them; {@code java/evolved} has those of the new job. */
public final class Evolved {
    private Evolved() {}

    public static class Same {
        public int a;
        public String b;
    }

    public static class Grown {
        public int a;
        public String b;
    }

    public static class Shrunk {
        public int a;
        public String b;
        public long c;
    }

    public static class Renamed {
        public int a;
        public String b;
    }

    public static class Retyped {
        public int a;
        public String b;
    }

    public static class Boxed {
        public int a;
        public String b;
    }

    public static class Animal {
        public int legs;
    }

    public static class Cat extends Animal {
        public int lives;
    }

    public static class Vehicle {
        public int wheels;
    }

    public static class Truck extends Vehicle {
        public int load;
    }

    public static class NoMorePojo {
        public int a;
    }

    public static class PojoNow {
        public int a;

        public PojoNow(int a) {
            this.a = a;
        }
    }

    /** Left to Kryo: it has no constructor that Flink can call, and its fields are its own. */
    public static final class Opened {
        private final int a;
        private final Long b;
        private final String c;
        private final String d;
        private final double[] e;
        private final Front f;
        private final Same g;
        private final boolean h;

        public Opened(int n) {
            a = n;
            b = (long) n << 33;
            c = "text " + n;
            d = null;
            e = new double[] {n, 0.5};
            f = Front.values()[n / 10 % 2];
            g = new Same();
            g.a = -n;
            g.b = "of " + n;
            h = n > 10;
        }
    }

    public enum Front {
        RED, BLUE
    }

    public enum Less {
        RED, BLUE
    }

    public static final class KryoSame {
        private int a;
        private String b;
    }

    public static final class KryoGrown {
        private int a;
        private String b;
    }

    public static final class KryoShrunk {
        private int a;
        private int b;
        private String c;
    }

    public static final class KryoRenamed {
        private int a;
        private int b;
        private int c;
    }

    public static final class KryoRetyped {
        private int a;
    }

    public static final class KryoFirst {
        private int a;
    }

    public static final class KryoSecond {
        private int a;
    }

    /** A class that the new job does not have. */
    public static final class KryoGone {
        private int a;
    }

    /** A value of a class: each field holds something else in each. */
    public static Object of(String name, int n) throws Exception {
        Class<?> cls = Class.forName(name.replace("$Animal", "$Cat").replace("$Vehicle", "$Truck"));
        if (cls.isEnum()) {
            return cls.getEnumConstants()[n % 2];
        }
        if (cls.getConstructors().length == 1 && cls.getConstructors()[0].getParameterCount() == 1) {
            return cls.getConstructors()[0].newInstance(10 * n);
        }
        java.lang.reflect.Constructor<?> make = cls.getDeclaredConstructor();
        make.setAccessible(true);
        Object value = make.newInstance();
        int i = 0;
        for (Class<?> c = cls; c != Object.class; c = c.getSuperclass()) {
            for (java.lang.reflect.Field f : c.getDeclaredFields()) {
                f.setAccessible(true);
                int number = 10 * n + ++i;
                f.set(value, f.getType() == String.class ? "text " + number : f.getType() == long.class ? (Object) (long) number : number);
            }
        }
        return value;
    }
}
