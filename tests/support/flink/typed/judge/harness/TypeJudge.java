package harness;

import java.io.File;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.apache.flink.api.common.ExecutionConfig;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.core.memory.DataOutputSerializer;

/**
 * Prints the serializers that Flink makes of classes: a line per class or POJO field, with class, field and a tree of serializers, separated
 * by tabs, and writes the snapshots of the serializers. The arguments are a folder of classes and one for the snapshots, or {@code --jdk} and
 * modules of the JDK, of which only what Flink does not leave to Kryo is printed.
 */
public final class TypeJudge {
    private TypeJudge() {}

    public static void main(String[] args) throws Exception {
        TreeSet<String> names = new TreeSet<>();
        boolean jdk = args[0].equals("--jdk");
        if (jdk) {
            for (int i = 1; i < args.length; i++) {
                names.addAll(ofJdk(args[i]));
            }
        } else {
            names.addAll(ofFolder(Path.of(args[0])));
        }
        for (String name : names) {
            Class<?> type;
            try {
                type = Class.forName(name, false, TypeJudge.class.getClassLoader());
            } catch (LinkageError e) {
                continue;
            }
            if (!type.isSynthetic()) {
                print(type, jdk ? null : Path.of(args[1]));
            }
        }
    }

    private static List<String> ofFolder(Path folder) throws Exception {
        try (Stream<Path> files = Files.walk(folder)) {
            return files.map(f -> folder.relativize(f).toString()).filter(f -> f.endsWith(".class") && !f.contains("-"))
                    .map(f -> f.substring(0, f.length() - 6).replace(File.separatorChar, '.')).toList();
        }
    }

    private static List<String> ofJdk(String module) throws Exception {
        Path root = Path.of(java.net.URI.create("jrt:/" + module));
        try (Stream<Path> files = Files.walk(root)) {
            return files.map(f -> root.relativize(f).toString()).filter(f -> f.startsWith("java") && f.endsWith(".class") && !f.contains("-"))
                    .map(f -> f.substring(0, f.length() - 6).replace('/', '.')).toList();
        }
    }

    private static void print(Class<?> type, Path snapshots) throws Exception {
        TypeSerializer<?> serializer;
        try {
            serializer = create(TypeInformation.of(type));
        } catch (Exception | LinkageError | StackOverflowError e) {
            System.out.println(type.getName() + "\t\tERROR " + e.getClass().getName());
            return;
        }
        String kind = serializer.getClass().getSimpleName();
        if (snapshots == null) {
            if (!kind.equals("KryoSerializer")) {
                System.out.println(type.getName() + "\t\t" + show(serializer));
            }
            return;
        }
        DataOutputSerializer out = new DataOutputSerializer(1024);
        TypeSerializerSnapshot.writeVersionedSnapshot(out, serializer.snapshotConfiguration());
        Files.write(snapshots.resolve(type.getName()), out.getCopyOfBuffer());
        if (!kind.equals("PojoSerializer")) {
            System.out.println(type.getName() + "\t\t" + show(serializer));
            return;
        }
        System.out.println(type.getName() + "\t\tPOJO " + type.getName());
        Field[] fields = (Field[]) get(serializer, "fields");
        TypeSerializer<?>[] serializers = (TypeSerializer<?>[]) get(serializer, "fieldSerializers");
        for (int i = 0; i < fields.length; i++) {
            System.out.println(type.getName() + "\t" + fields[i].getName() + "\t" + show(serializers[i]));
        }
    }

    private static TypeSerializer<?> create(TypeInformation<?> information) throws Exception {
        ExecutionConfig config = new ExecutionConfig();
        for (Method method : TypeInformation.class.getMethods()) {
            if (method.getName().equals("createSerializer") && method.getParameterCount() == 1) {
                Class<?> parameter = method.getParameterTypes()[0];
                if (parameter.isInstance(config)) {
                    return (TypeSerializer<?>) invoke(method, information, config);
                }
            }
        }
        Object serializers = ExecutionConfig.class.getMethod("getSerializerConfig").invoke(config);
        Method method = TypeInformation.class.getMethod("createSerializer", Class.forName("org.apache.flink.api.common.serialization.SerializerConfig"));
        return (TypeSerializer<?>) invoke(method, information, serializers);
    }

    private static Object invoke(Method method, Object on, Object argument) throws Exception {
        try {
            return method.invoke(on, argument);
        } catch (InvocationTargetException e) {
            if (e.getCause() instanceof Exception) {
                throw (Exception) e.getCause();
            }
            throw e;
        }
    }

    /** Shows a serializer by its name, the class that it writes if it has one, and its parts. */
    private static String show(TypeSerializer<?> serializer) throws Exception {
        String kind = serializer.getClass().getSimpleName().replaceAll("Serializer$", "");
        switch (kind) {
            case "Pojo":
                List<String> parts = new ArrayList<>();
                Field[] fields = (Field[]) get(serializer, "fields");
                TypeSerializer<?>[] serializers = (TypeSerializer<?>[]) get(serializer, "fieldSerializers");
                for (int i = 0; i < fields.length; i++) {
                    parts.add(fields[i].getName() + ": " + show(serializers[i]));
                }
                return "POJO " + name(serializer, "clazz") + "(" + String.join(", ", parts) + ")";
            case "Tuple0":
                return kind;
            case "Kryo":
                return "KRYO " + name(serializer, "type");
            case "Tuple":
                return "TUPLE " + name(serializer, "tupleClass") + showAll((TypeSerializer<?>[]) get(serializer, "fieldSerializers"));
            case "GenericArray":
                return "ARRAY " + name(serializer, "componentClass") + showAll(part(serializer, "componentSerializer"));
            case "Enum":
                return "ENUM " + name(serializer, "enumClass");
            case "CopyableValue":
                return "COPYABLE " + name(serializer, "valueClass");
            case "Value":
                return "VALUE " + name(serializer, "type");
            case "Avro":
                return "AVRO " + name(serializer, "type");
            case "Nullable":
                return "NULLABLE" + showAll(part(serializer, "originalSerializer"));
            case "List":
            case "Set":
                return kind.toUpperCase() + showAll(part(serializer, "elementSerializer"));
            case "Map":
                return "MAP" + showAll(part(serializer, "keySerializer"), part(serializer, "valueSerializer"));
            case "Either":
                return "EITHER" + showAll(part(serializer, "leftSerializer"), part(serializer, "rightSerializer"));
            default:
                return serializer.getClass().getPackageName().startsWith("org.apache.flink.api.common.typeutils.base") ? kind
                        : "OTHER " + serializer.getClass().getName();
        }
    }

    private static TypeSerializer<?> part(Object of, String field) throws Exception {
        return (TypeSerializer<?>) get(of, field);
    }

    private static String showAll(TypeSerializer<?>... parts) throws Exception {
        List<String> shown = new ArrayList<>();
        for (TypeSerializer<?> part : parts) {
            shown.add(show(part));
        }
        return "(" + String.join(", ", shown) + ")";
    }

    private static String name(Object of, String field) throws Exception {
        return ((Class<?>) get(of, field)).getName();
    }

    private static Object get(Object of, String name) throws Exception {
        for (Class<?> type = of.getClass(); type != null; type = type.getSuperclass()) {
            for (Field field : type.getDeclaredFields()) {
                if (field.getName().equals(name) && !Modifier.isStatic(field.getModifiers())) {
                    field.setAccessible(true);
                    return field.get(of);
                }
            }
        }
        throw new NoSuchFieldException(of.getClass() + " " + name);
    }
}
