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

    public static class NoMorePojo {
        public int a;
    }

    public static class PojoNow {
        public int a;

        public PojoNow(int a) {
            this.a = a;
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

    /** A value of a class: each field holds something else in each. */
    public static Object of(String name, int n) throws Exception {
        Class<?> cls = Class.forName(name.equals("evolved.Evolved$Animal") ? "evolved.Evolved$Cat" : name);
        if (cls.isEnum()) {
            return cls.getEnumConstants()[n % 2];
        }
        if (cls == PojoNow.class) {
            return new PojoNow(10 * n);
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
