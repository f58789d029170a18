package acme;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** Prints fields and hash codes of random objects of the classes named by the arguments, as JSON, one object a line. */
public final class HashPrinter {
    private HashPrinter() {}

    private static final Random RANDOM = new Random(5);

    public static void main(String[] names) throws Exception {
        for (String name : names) {
            Class<?> cls = Class.forName(name);
            List<Field> fields = new ArrayList<>();
            for (Class<?> level = cls; level != null; level = level.getSuperclass()) {
                for (Field field : level.getDeclaredFields()) {
                    if (!Modifier.isStatic(field.getModifiers())) fields.add(field);
                }
            }
            for (int n = 0; n < 40; n++) {
                List<Object> values = new ArrayList<>();
                for (Field field : fields) values.add(random(field.getType(), n));
                Object made;
                Constructor<?>[] constructors = cls.getDeclaredConstructors();
                Constructor<?> constructor = constructors[0];
                constructor.setAccessible(true);
                if (constructor.getParameterCount() == 0) {
                    made = constructor.newInstance();
                    for (int i = 0; i < values.size(); i++) {
                        fields.get(i).setAccessible(true);
                        fields.get(i).set(made, values.get(i));
                    }
                } else {
                    try {
                        made = constructor.newInstance(values.toArray());
                    } catch (java.lang.reflect.InvocationTargetException e) {
                        continue; // Kotlin refuses null
                    }
                }
                List<String> parts = new ArrayList<>();
                for (int i = 0; i < values.size(); i++) {
                    parts.add("\"" + fields.get(i).getName() + "\": " + json(values.get(i)));
                }
                int hash;
                try {
                    hash = made.hashCode();
                } catch (NullPointerException e) {
                    continue;
                }
                System.out.println("{\"class\": \"" + name + "\", \"fields\": {" + String.join(", ", parts) + "}, \"hash\": " + hash + "}");
            }
        }
    }

    private static Object random(Class<?> type, int n) {
        if (type == int.class || (type == Integer.class && n % 3 > 0)) return RANDOM.nextInt();
        if (type == long.class || (type == Long.class && n % 3 > 0)) return RANDOM.nextLong();
        if (type == short.class) return (short) RANDOM.nextInt();
        if (type == byte.class) return (byte) RANDOM.nextInt();
        if (type == char.class) return (char) (65 + RANDOM.nextInt(999));
        if (type == boolean.class || (type == Boolean.class && n % 3 > 0)) return RANDOM.nextBoolean();
        if (type == float.class) return new float[] {0f, -0f, RANDOM.nextFloat(), Float.NaN}[RANDOM.nextInt(4)];
        if (type == double.class || (type == Double.class && n % 3 > 0)) return new double[] {0, -0.0, RANDOM.nextDouble(), Double.NaN}[RANDOM.nextInt(4)];
        if (type == String.class && n % 4 > 0) return "text" + RANDOM.nextInt(999);
        if (type == byte[].class && n % 4 > 0) return new byte[] {(byte) n, -1, 7};
        if (type == int[].class && n % 4 > 0) return new int[] {n, -1};
        if (type == List.class && n % 4 > 0) return new ArrayList<>(List.of("a" + n, "b"));
        return null;
    }

    @SuppressWarnings("unchecked")
    private static String json(Object value) {
        if (value instanceof Float || value instanceof Double) return "\"" + value + "\"";
        if (value instanceof Character) return "\"" + (Character) value + "\"";
        if (value instanceof String) return "\"" + value + "\"";
        if (value instanceof byte[]) return java.util.Arrays.toString((byte[]) value);
        if (value instanceof int[]) return java.util.Arrays.toString((int[]) value);
        if (value instanceof List) return "[\"" + String.join("\", \"", (List<String>) value) + "\"]";
        return String.valueOf(value);
    }
}
