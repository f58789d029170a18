package harness;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import org.apache.flink.api.common.ExecutionConfig;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeutils.TypeSerializer;

/** What has another form in some releases, so that one source compiles against all of them. */
final class Reflect {
    private Reflect() {}

    static Object create(String cls, Class<?> parameter, Object argument) {
        try {
            return Class.forName(cls).getConstructor(parameter).newInstance(argument);
        } catch (ReflectiveOperationException e) {
            throw new IllegalArgumentException(e);
        }
    }

    /** Call a public method by name, the first whose parameters fit. */
    static Object call(Object target, String name, Object... arguments) throws Exception {
        for (Method m : target.getClass().getMethods()) {
            if (m.getName().equals(name) && fits(m.getParameterTypes(), arguments)) {
                try {
                    m.setAccessible(true);
                    return m.invoke(target, arguments);
                } catch (InvocationTargetException e) {
                    throw e.getCause() instanceof Exception ? (Exception) e.getCause() : e;
                }
            }
        }
        throw new NoSuchMethodException(target.getClass() + "." + name);
    }

    private static boolean fits(Class<?>[] types, Object[] arguments) {
        if (types.length != arguments.length) {
            return false;
        }
        for (int i = 0; i < types.length; i++) {
            boolean primitive = types[i] == boolean.class && arguments[i] instanceof Boolean;
            if (!primitive && !types[i].isInstance(arguments[i])) {
                return false;
            }
        }
        return true;
    }

    /** {@code createSerializer} takes an ExecutionConfig before 1.19, a SerializerConfig from 2.0 on. */
    @SuppressWarnings("unchecked")
    static <T> TypeSerializer<T> serializer(TypeInformation<T> type, ExecutionConfig config) throws Exception {
        Object argument = config;
        try {
            argument = call(config, "getSerializerConfig");
        } catch (NoSuchMethodException e) {
            // an older release
        }
        return (TypeSerializer<T>) call(type, "createSerializer", argument);
    }
}
