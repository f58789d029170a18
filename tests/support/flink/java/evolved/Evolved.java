package evolved;

/** Classes as the new job has them; {@code before/evolved} has those of the old job. */
public final class Evolved {
    private Evolved() {}

    public static class Same {
        public int a;
        public String b;
    }

    public static class Grown {
        public int a;
        public String b;
        public long c;
    }

    public static class Shrunk {
        public int a;
        public String b;
    }

    public static class Renamed {
        public int a;
        public String z;
    }

    public static class Retyped {
        public long a;
        public String b;
    }

    public static class Boxed {
        public Integer a;
        public String b;
    }

    public static class Animal {
        public int legs;
    }

    public static class Cat extends Animal {
        public int lives;
        public String mood;
    }

    public static class Vehicle {
        public int doors;
        public int wheels;
    }

    public static class Truck extends Vehicle {
        public int load;
    }

    /** A POJO before; without a constructor that Flink can call it is left to Kryo. */
    public static class NoMorePojo {
        public int a;

        public NoMorePojo(int a) {
            this.a = a;
        }
    }

    public static class PojoNow {
        public int a;
    }

    /** Left to Kryo before, of the same fields. */
    public static class Opened {
        public int a;
        public Long b;
        public String c;
        public String d;
        public double[] e;
        public Front f;
        public Same g;
        public boolean h;
    }

    public enum Front {
        NEW, RED, BLUE
    }

    public enum Less {
        RED
    }

    public static final class KryoSame {
        private int a;
        private String b;
    }

    public static final class KryoGrown {
        private int a;
        private String b;
        private long c;
    }

    public static final class KryoShrunk {
        private int a;
    }

    /** Kryo goes by the order of names: what was {@code b} is now last. */
    public static final class KryoRenamed {
        private int a;
        private int c;
        private int z;
    }

    public static final class KryoRetyped {
        private String a;
    }

    public static final class KryoFirst {
        private int a;
    }

    public static final class KryoSecond {
        private int a;
    }
}
