package evolved;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;

/** Values of the classes of old jobs. */
final class Kinds {
    private Kinds() {}

    static String s(int n) {
        return "text " + n;
    }

    /** Set all fields of numbers and texts. */
    static <T> T fill(T value, int n) throws Exception {
        for (Class<?> c = value.getClass(); c != Object.class; c = c.getSuperclass()) {
            for (Field f : c.getDeclaredFields()) {
                if (!Modifier.isStatic(f.getModifiers()) && !Modifier.isTransient(f.getModifiers())) {
                    f.setAccessible(true);
                    Object found = simple(f.getType(), n);
                    if (found != null) {
                        f.set(value, found);
                    }
                }
            }
        }
        return value;
    }

    /** Set all fields to values that differ for each number. */
    static <T> T vary(T value, int n) throws Exception {
        fill(value, n);
        for (Field f : value.getClass().getDeclaredFields()) {
            f.setAccessible(true);
            if (f.getType().isEnum()) {
                f.set(value, f.getType().getEnumConstants()[n % 3]);
            } else if (f.getType() == int[].class) {
                f.set(value, new int[] {n, n + 1});
            } else if (f.getType() == double.class) {
                f.set(value, n / 4.0);
            } else if (f.getType() == java.math.BigDecimal.class) {
                f.set(value, new java.math.BigDecimal(n));
            } else if (f.getType() == java.util.UUID.class) {
                f.set(value, new java.util.UUID(n, 3 * n));
            } else if (f.getType() == List.class) {
                f.set(value, list(s(n)));
            } else if (f.getType().getName().startsWith("evolved.")) {
                f.set(value, fill(f.getType().getConstructor().newInstance(), n));
            }
        }
        return value;
    }

    private static Object simple(Class<?> type, int n) {
        if (type == String.class) {
            return s(n);
        }
        if (type == int.class || type == Integer.class) {
            return n + 3;
        }
        if (type == long.class || type == Long.class) {
            return n + 3L;
        }
        return type == boolean.class || type == Boolean.class ? Boolean.TRUE : null;
    }

    /** Set the last field that takes an object, and numbers and texts before it. */
    static <T> T hold(T value, Object held) throws Exception {
        fill(value, 4);
        for (Class<?> c = value.getClass(); c != Object.class; c = c.getSuperclass()) {
            for (Field f : c.getDeclaredFields()) {
                if (!f.getType().isPrimitive() && f.getType() != String.class && f.getType().isInstance(held)) {
                    f.setAccessible(true);
                    f.set(value, held);
                }
            }
        }
        return value;
    }

    @SafeVarargs
    static <T> List<T> list(T... items) {
        return new ArrayList<>(Arrays.asList(items));
    }

    static <K, V> Map<K, V> map(K key, V value) {
        Map<K, V> found = new HashMap<>();
        found.put(key, value);
        return found;
    }

    static <T> T cycle(T value) throws Exception {
        return hold(value, value);
    }

    /** The same object twice. */
    static <T> T share(T value) throws Exception {
        return hold(value, list("shared"));
    }

    static Map<Object, Object> identity(int n) {
        Map<Object, Object> found = new IdentityHashMap<>();
        found.put("a", s(n));
        return found;
    }
}
