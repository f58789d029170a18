package ran;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;

/** Values of the classes of the old job. */
public final class Values {
    public static Object[] of(String name) throws Exception {
        Class<?> type = Class.forName(name);
        List<Object> values = new ArrayList<>();
        for (int number : new int[] {3, 70000, -1}) {
            if (name.startsWith("scala.")) {
                values.add(scala.Some.apply("text " + number));
                continue;
            }
            try {
                values.add(type.getConstructor(long.class).newInstance((long) number));
            } catch (NoSuchMethodException e) {
                Constructor<?> create = type.getConstructor();
                Object value = create.newInstance();
                Field field = type.getDeclaredField("a");
                field.setAccessible(true);
                field.set(value, number);
                values.add(value);
            }
        }
        return values.toArray();
    }
}
