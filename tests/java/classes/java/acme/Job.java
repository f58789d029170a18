package acme;

import org.apache.flink.api.common.ExecutionConfig;

/** A job that registers serializers, as constants and otherwise. */
public final class Job {
    private Job() {}

    public static class Money { public long cents; }

    public static class MoneySerializer {}

    public static class Shape { public int sides; }

    public static class Square extends Shape { public int width; }

    public static class ShapeSerializer {}

    public static class Other { public int n; }

    public static class Plain { public int n; }

    static Class<?> choose(Class<?> a) { return a; }

    public static void main(String[] args) {
        ExecutionConfig config = new ExecutionConfig();
        config.registerTypeWithKryoSerializer(Money.class, MoneySerializer.class);
        config.addDefaultKryoSerializer(Shape.class, new ShapeSerializer());
        config.registerTypeWithKryoSerializer(Other.class, choose(MoneySerializer.class));
        config.registerTypeWithKryoSerializer(Plain.class, String.class);
    }
}
