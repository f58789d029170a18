import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.TypeSerializerSchemaCompatibility;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.api.java.typeutils.TypeExtractor;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.CoreOptions;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.apache.flink.runtime.state.StateSerializerProvider;
import org.apache.flink.runtime.util.EnvironmentInformation;
import org.apache.flink.util.ChildFirstClassLoader;

/**
 * Asks Flink and the classes of a job whether they read serializers and values of a savepoint.
 *
 * <p>Reads requests on stdin, and writes an answer to each on stdout (machine.py has the other side). Texts and bytes follow their
 * length, an int. It opens no file but the jars, and no connection. Code of the job runs: static initializers, constructors, serializers,
 * hashCode and equals.
 */
public final class StateRun {
    private static final int KEYED = 0, ELEMENTS = 1, BROADCAST = 2, TIMERS = 3;
    private static final int CLASS_NAME = 1, ASSUMED = 2;
    private static final int MOST_REWRITTEN = 20, MOST_BYTES = 4096, MOST_TEXT = 160;

    private final DataInputStream in;
    private final DataOutputStream out;
    private final ClassLoader now;
    /** The classes of the old job, null if they are not known. */
    private final ClassLoader before;

    private StateRun(DataInputStream in, DataOutputStream out) throws IOException {
        this.in = in;
        this.out = out;
        now = loader(urls());
        URL[] old = urls();
        before = old.length == 0 ? null : loader(old);
        Thread.currentThread().setContextClassLoader(now);
    }

    public static void main(String[] args) throws Exception {
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(new FileOutputStream(FileDescriptor.out)));
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in));
        // What the job's classes print does not disturb the answers.
        System.setOut(System.err);
        System.setIn(new ByteArrayInputStream(new byte[0]));
        ProcessHandle.current().parent().ifPresent(p -> p.onExit().thenRun(() -> Runtime.getRuntime().halt(1)));
        writeText(out, EnvironmentInformation.getVersion());
        writeText(out, System.getProperty("java.version"));
        out.flush();
        StateRun run = new StateRun(in, out);
        while (run.answerNext()) {
            out.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private URL[] urls() throws IOException {
        URL[] urls = new URL[in.readInt()];
        for (int i = 0; i < urls.length; i++) {
            urls[i] = new URL(readText());
        }
        return urls;
    }

    /** The class loader of a job, with the classes that Flink takes from its own jars first. */
    private static ClassLoader loader(URL[] urls) {
        String[] parentFirst = CoreOptions.getParentFirstLoaderPatterns(new Configuration());
        return new ChildFirstClassLoader(urls, StateRun.class.getClassLoader(), parentFirst, error -> {});
    }

    /** Answers the request of one state; false at the end of all requests. */
    private boolean answerNext() throws IOException {
        int form;
        try {
            form = in.readByte();
        } catch (EOFException e) {
            return false;
        }
        Answer answer = new Answer();
        int maxParallelism = in.readInt();
        boolean readsOld = in.readBoolean();
        boolean readsNew = in.readBoolean();
        Map<String, Part> parts = new LinkedHashMap<>();
        for (int n = in.readInt(); n > 0; n--) {
            String role = readText();
            byte[] old = readBytes();
            int origin = in.readByte();
            byte[] successor = readBytes();
            boolean compares = in.readBoolean() && before != null;
            parts.put(role, new Part(answer, role, old, successor, origin, readsOld, readsNew, compares));
        }
        Reader reader = new Reader(answer, parts, form, maxParallelism);
        while (in.readBoolean()) {
            int group = in.readInt();
            byte[] key = readBytes();
            byte[] value = readBytes();
            reader.read(group, key, value);
        }
        answer.write(parts.values());
        return true;
    }

    /** What is said about the parts of one state. */
    private final class Answer {
        private final List<String[]> findings = new ArrayList<>();
        private final List<byte[][]> rewritten = new ArrayList<>();
        private final List<String> rewrittenRoles = new ArrayList<>();
        private int entries;

        /** Adds the first finding of a kind about a part. */
        void add(String role, String kind, String text) {
            for (String[] finding : findings) {
                if (finding[0].equals(role) && finding[1].equals(kind)) {
                    return;
                }
            }
            findings.add(new String[] {role, kind, text, ""});
        }

        void fail(String role, String kind, Throwable error) {
            add(role, kind, describe(error));
            findings.get(findings.size() - 1)[3] = missingClass(error);
        }

        void write(Collection<Part> parts) throws IOException {
            out.writeInt(entries);
            out.writeInt(findings.size());
            for (String[] finding : findings) {
                for (String text : finding) {
                    writeText(out, text);
                }
            }
            out.writeInt(rewritten.size());
            for (int i = 0; i < rewritten.size(); i++) {
                writeText(out, rewrittenRoles.get(i));
                writeBytes(rewritten.get(i)[0]);
                writeBytes(rewritten.get(i)[1]);
            }
        }
    }

    /** A serializer of the old job and its successor: for keys, namespaces, values, elements, or keys of maps. */
    private final class Part {
        final String role;
        private final Answer answer;
        /** Reads with the snapshot of the old serializer, as Flink restores it in the new job. */
        TypeSerializer<Object> previous;
        private TypeSerializer<Object> current;
        /** Reads with the classes of the old job. */
        private TypeSerializer<Object> original;
        private final List<TypeSerializer<Object>> readers = new ArrayList<>();
        private TypeSerializerSnapshot<Object> snapshot;
        private boolean migrates;
        /** Whether only the old job tells the serializer, and no value was asked for that of its class. */
        private boolean isAssumed;
        boolean usable;

        Part(Answer answer, String role, byte[] old, byte[] successor, int origin, boolean readsOld, boolean readsNew, boolean compares) {
            this.answer = answer;
            this.role = role;
            TypeSerializer<Object> registered;
            try {
                snapshot = snapshot(old, now);
            } catch (Throwable error) {
                answer.fail(role, "old_snapshot", error);
                return;
            }
            try {
                registered = origin == CLASS_NAME
                        ? extracted(new String(successor, StandardCharsets.UTF_8), now)
                        : snapshot(successor, now).restoreSerializer();
            } catch (Throwable error) {
                answer.fail(role, "new_snapshot", error);
                return;
            }
            try {
                StateSerializerProvider<Object> provider = StateSerializerProvider.fromPreviousSerializerSnapshot(snapshot);
                TypeSerializerSchemaCompatibility<Object> found = provider.registerNewSerializerForRestoredState(registered);
                migrates = found.isCompatibleAfterMigration();
                if (found.isIncompatible()) {
                    answer.add(role, "resolved", "incompatible");
                    return;
                }
                answer.add(role, "resolved", migrates ? "after_migration" : "as_is");
                previous = provider.previousSchemaSerializer();
                current = provider.currentSchemaSerializer();
            } catch (Throwable error) {
                answer.fail(role, "unresolved", error);
                return;
            }
            if (readsOld || migrates) {
                readers.add(previous);
            }
            if (readsNew && !migrates) {
                readers.add(current);
            }
            if (compares) {
                Thread.currentThread().setContextClassLoader(before);
                try {
                    original = snapshot(old, before).restoreSerializer();
                } catch (Throwable error) {
                    answer.add(role, "uncompared", describe(error));
                } finally {
                    Thread.currentThread().setContextClassLoader(now);
                }
            }
            isAssumed = origin == ASSUMED;
            usable = true;
        }

        /** Reads a value as Flink does, writes it with the new serializer, and compares. Returns the value, null if that fails. */
        Object check(byte[] bytes) {
            Object value = null;
            try {
                for (TypeSerializer<Object> reader : readers) {
                    DataInputDeserializer source = new DataInputDeserializer(bytes);
                    value = reader.deserialize(source);
                    if (source.available() > 0) {
                        answer.add(role, "left", source.available() + " bytes of a value are not read");
                    }
                }
            } catch (Throwable error) {
                answer.fail(role, "unread", error);
                return null;
            }
            if (isAssumed && value != null) {
                isAssumed = false;
                askForSerializer(value.getClass().getName());
            }
            byte[] written;
            try {
                DataOutputSerializer target = new DataOutputSerializer(64);
                current.serialize(value, target);
                written = target.getCopyOfBuffer();
            } catch (Throwable error) {
                answer.fail(role, "unwritten", error);
                return value;
            }
            if (original != null) {
                compare(bytes, value);
            } else {
                keep(bytes, written);
            }
            if (!Arrays.equals(bytes, written)) {
                answer.add(role, "rewritten", show(value));
            }
            return value;
        }

        /** Asks type extraction for the serializer of a class in both jobs: the new one may give it another one. */
        private void askForSerializer(String type) {
            String was = "";
            if (original != null) {
                Thread.currentThread().setContextClassLoader(before);
                try {
                    was = extracted(type, before).getClass().getName();
                } catch (Throwable error) {
                    // Then the old job had it from elsewhere.
                } finally {
                    Thread.currentThread().setContextClassLoader(now);
                }
            }
            if (original == null || !was.equals(original.getClass().getName())) {
                answer.add(role, "assumed", "");
                return;
            }
            try {
                TypeSerializer<Object> next = extracted(type, now);
                if (StateSerializerProvider.fromPreviousSerializerSnapshot(snapshot).registerNewSerializerForRestoredState(next).isIncompatible()) {
                    answer.add(role, "replaced", next.getClass().getName() + " of " + type);
                }
            } catch (Throwable error) {
                answer.fail(role, "unresolved", error);
            }
        }

        private void keep(byte[] bytes, byte[] written) {
            if (answer.rewritten.size() < MOST_REWRITTEN && bytes.length <= MOST_BYTES && written.length <= MOST_BYTES) {
                answer.rewritten.add(new byte[][] {bytes, written});
                answer.rewrittenRoles.add(role);
            } else if (!Arrays.equals(bytes, written)) {
                answer.add(role, "uncompared", "some values are many or large");
            }
        }

        private void compare(byte[] bytes, Object value) {
            if (migrates && printsContent(value.getClass())) {
                return; // The text of equal numbers of other types differs.
            }
            Object was;
            Thread.currentThread().setContextClassLoader(before);
            try {
                was = original.deserialize(new DataInputDeserializer(bytes));
            } catch (Throwable error) {
                answer.add(role, "uncompared", describe(error));
                return;
            } finally {
                Thread.currentThread().setContextClassLoader(now);
            }
            try {
                String difference = difference("", content(was, visited()), content(value, visited()), migrates);
                if (difference != null) {
                    answer.add(role, "changed", difference);
                }
            } catch (Throwable error) {
                answer.add(role, "uncompared", describe(error));
            }
        }

        /** Checks hash code and equals of a key, of a namespace or of a key of a map. */
        void checkIdentity(byte[] bytes, Object value, int group, int maxParallelism) {
            try {
                if (group >= 0) {
                    int found = KeyGroupRangeAssignment.assignToKeyGroup(value, maxParallelism);
                    answer.add(role, "keys", "");
                    if (found != group) {
                        answer.add(role, "hash", show(value) + " is in key group " + group + ", and the new job looks for it in " + found);
                    }
                }
                Object again = readers.get(readers.size() - 1).deserialize(new DataInputDeserializer(bytes));
                if (!value.equals(again) || value.hashCode() != again.hashCode()) {
                    answer.add(role, "equals", show(value));
                }
            } catch (Throwable error) {
                answer.fail(role, "identity", error);
            }
        }
    }

    /** Splits entries into their parts, which it checks. */
    private static final class Reader {
        private final Answer answer;
        private final Map<String, Part> parts;
        private final int form;
        private final int maxParallelism;
        private boolean ambiguous;
        private boolean usable = true;

        Reader(Answer answer, Map<String, Part> parts, int form, int maxParallelism) {
            this.answer = answer;
            this.parts = parts;
            this.form = form;
            this.maxParallelism = maxParallelism;
            for (Part part : parts.values()) {
                usable &= part.usable;
            }
            if (usable && parts.containsKey("namespace")) {
                ambiguous = parts.get("key").previous.getLength() < 0 && parts.get("namespace").previous.getLength() < 0;
            }
        }

        void read(int group, byte[] key, byte[] value) {
            if (!usable) {
                return;
            }
            answer.entries++;
            DataInputDeserializer keys = new DataInputDeserializer(key);
            DataInputDeserializer values = new DataInputDeserializer(value);
            if (form == ELEMENTS) {
                parts.get("value").check(value);
            } else if (form == BROADCAST) {
                broadcast(values, value);
            } else {
                keyed(group, keys, key, values, value);
            }
        }

        private void keyed(int group, DataInputDeserializer keys, byte[] key, DataInputDeserializer values, byte[] value) {
            try {
                if (form == TIMERS) {
                    keys.skipBytesToRead(Long.BYTES);
                    next("key", keys, key, group);
                    next("namespace", keys, key, -1);
                    return;
                }
                next("key", keys, key, group);
                skipMarker(keys, 0);
                int start = keys.getPosition();
                next("namespace", keys, key, -1);
                skipMarker(keys, start);
                if (parts.containsKey("map key")) {
                    next("map key", keys, key, -1);
                    if (values.readBoolean()) {
                        return;
                    }
                }
                if (parts.containsKey("element")) {
                    next("element", values, value, -1);
                    while (values.available() > 0) {
                        values.skipBytesToRead(1);
                        next("element", values, value, -1);
                    }
                } else {
                    parts.get("value").check(Arrays.copyOfRange(value, values.getPosition(), value.length));
                }
            } catch (Throwable error) {
                answer.fail("value", "unread", error);
            }
        }

        private void broadcast(DataInputDeserializer values, byte[] value) {
            try {
                for (int n = values.readInt(); n > 0; n--) {
                    next("map key", values, value, -1);
                    next("value", values, value, -1);
                }
            } catch (Throwable error) {
                answer.fail("value", "unread", error);
            }
        }

        /** Finds the end of a part with the restored serializer, and checks it. */
        private void next(String role, DataInputDeserializer source, byte[] bytes, int group) throws IOException {
            Part part = parts.get(role);
            int start = source.getPosition();
            try {
                part.readers.get(0).deserialize(source);
            } catch (Throwable error) {
                answer.fail(role, "unread", error);
                throw error;
            }
            byte[] own = Arrays.copyOfRange(bytes, start, source.getPosition());
            Object read = part.check(own);
            if (read != null && (role.equals("key") || role.equals("namespace") || role.equals("map key"))) {
                part.checkIdentity(own, read, group, maxParallelism);
            }
        }

        /** Skips the length that follows keys and namespaces if both have no fixed one (CompositeKeySerializationUtils). */
        private void skipMarker(DataInputDeserializer source, int start) throws IOException {
            if (ambiguous) {
                int length = source.getPosition() - start;
                do {
                    source.readByte();
                    length >>>= 8;
                } while (length != 0);
            }
        }
    }

    private static TypeSerializerSnapshot<Object> snapshot(byte[] bytes, ClassLoader classes) throws IOException {
        return TypeSerializerSnapshot.readVersionedSnapshot(new DataInputDeserializer(bytes), classes);
    }

    /** The serializer that Flink's type extraction gives a class of the new job, without registrations. */
    @SuppressWarnings("unchecked")
    private static TypeSerializer<Object> extracted(String name, ClassLoader loader) throws Exception {
        Class<?> type = Class.forName(name, false, loader);
        TypeInformation<?> information = TypeExtractor.createTypeInfo(type);
        Class<?> config;
        Object given;
        try {
            config = Class.forName("org.apache.flink.api.common.serialization.SerializerConfig");
            given = Class.forName("org.apache.flink.api.common.serialization.SerializerConfigImpl").getConstructor().newInstance();
        } catch (ClassNotFoundException e) {
            config = Class.forName("org.apache.flink.api.common.ExecutionConfig");
            given = config.getConstructor().newInstance();
        }
        Method create = TypeInformation.class.getMethod("createSerializer", config);
        return (TypeSerializer<Object>) create.invoke(information, given);
    }

    /** The content of a value: maps of fields, lists and texts, which can be compared across class loaders. */
    private static Object content(Object value, Set<Object> visited) throws IllegalAccessException {
        if (value == null) {
            return null;
        }
        Class<?> type = value.getClass();
        if (value instanceof Enum) {
            return ((Enum<?>) value).name();
        }
        if (isOf(type, "java.lang.") && type != Object.class) {
            return value.toString();
        }
        if (!visited.add(value)) {
            return "an object that occurs before";
        }
        if (type.isArray()) {
            List<Object> items = new ArrayList<>();
            for (int i = 0; i < Array.getLength(value); i++) {
                items.add(content(Array.get(value, i), visited));
            }
            return items;
        }
        if (value instanceof Map && isOf(type, "java.")) {
            Map<String, Object> entries = new TreeMap<>();
            for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
                entries.put(String.valueOf(content(entry.getKey(), visited)), content(entry.getValue(), visited));
            }
            return new ArrayList<Object>(entries.entrySet());
        }
        if (value instanceof Collection && isOf(type, "java.")) {
            List<Object> items = new ArrayList<>();
            for (Object item : (Collection<?>) value) {
                items.add(content(item, visited));
            }
            if (value instanceof Set) {
                items.sort((a, b) -> String.valueOf(a).compareTo(String.valueOf(b)));
            }
            return items;
        }
        if (isOf(type, "java.", "javax.", "jdk.", "sun.", "scala.") || printsContent(type)) {
            return value.toString();
        }
        Map<String, Object> fields = new TreeMap<>();
        for (Class<?> cls = type; cls != null && cls != Object.class; cls = cls.getSuperclass()) {
            for (Field field : cls.getDeclaredFields()) {
                if (!Modifier.isStatic(field.getModifiers()) && !field.isSynthetic() && !Modifier.isTransient(field.getModifiers())) {
                    field.setAccessible(true);
                    fields.putIfAbsent(field.getName(), content(field.get(value), visited));
                }
            }
        }
        return fields;
    }

    private static Set<Object> visited() {
        return Collections.newSetFromMap(new IdentityHashMap<>());
    }

    private static boolean isOf(Class<?> type, String... packages) {
        return Arrays.stream(packages).anyMatch(type.getName()::startsWith);
    }

    /** Whether a value is a record of Avro or a message of Protobuf, whose fields are not those of its class. */
    private static boolean printsContent(Class<?> type) {
        for (Class<?> cls = type; cls != null; cls = cls.getSuperclass()) {
            if (cls.getName().equals("com.google.protobuf.AbstractMessage")) {
                return true;
            }
            for (Class<?> of : cls.getInterfaces()) {
                if (of.getName().startsWith("org.apache.avro.generic.") || of.getName().startsWith("org.apache.avro.specific.")) {
                    return true;
                }
            }
        }
        return false;
    }

    /** The first difference; null if there is none. Fields that only one side has are no difference after a migration, which drops and adds them. */
    private static String difference(String path, Object was, Object is, boolean migrates) {
        if (was instanceof Map && is instanceof Map) {
            Map<?, ?> after = (Map<?, ?>) is;
            for (Map.Entry<?, ?> field : ((Map<?, ?>) was).entrySet()) {
                if (!after.containsKey(field.getKey()) && migrates) {
                    continue;
                }
                String inner = path.isEmpty() ? field.getKey().toString() : path + "." + field.getKey();
                String found = difference(inner, field.getValue(), after.get(field.getKey()), migrates);
                if (found != null) {
                    return found;
                }
            }
            return null;
        }
        if (was instanceof List && is instanceof List && ((List<?>) was).size() == ((List<?>) is).size()) {
            for (int i = 0; i < ((List<?>) was).size(); i++) {
                String found = difference(path, ((List<?>) was).get(i), ((List<?>) is).get(i), migrates);
                if (found != null) {
                    return found;
                }
            }
            return null;
        }
        if (was == null ? is == null : was.equals(is)) {
            return null;
        }
        return (path.isEmpty() ? "" : path + ": ") + shorten(String.valueOf(was)) + " becomes " + shorten(String.valueOf(is));
    }

    private static String describe(Throwable error) {
        Throwable cause = error;
        while (cause.getCause() != null && cause.getCause() != cause) {
            cause = cause.getCause();
        }
        String message = cause.getMessage();
        return shorten(cause.getClass().getName() + (message == null ? "" : ": " + message.split("\n", 2)[0].replaceAll("[.\\s]+$", "")));
    }

    /** The class that an error says is missing, "?" if it is another limit of this run, and empty if it is none. */
    private static String missingClass(Throwable error) {
        for (Throwable cause = error; cause != null; cause = cause.getCause()) {
            String message = String.valueOf(cause.getMessage());
            if (cause instanceof ClassNotFoundException || cause instanceof NoClassDefFoundError && !message.startsWith("Could not init")) {
                return message.replace('/', '.');
            }
            if (message.startsWith("Unable to find class: ")) {
                return message.substring("Unable to find class: ".length()).split("\\s", 2)[0];
            }
            if (cause instanceof VirtualMachineError && !(cause instanceof StackOverflowError)
                    || cause.getClass().getSimpleName().equals("InaccessibleObjectException")) {
                return "?";
            }
        }
        return "";
    }

    private static String show(Object value) {
        try {
            return shorten(String.valueOf(content(value, visited())));
        } catch (Throwable error) {
            return "a value of " + value.getClass().getName();
        }
    }

    private static String shorten(String text) {
        return text.length() <= MOST_TEXT ? text : text.substring(0, MOST_TEXT) + "...";
    }

    private String readText() throws IOException {
        return new String(readBytes(), StandardCharsets.UTF_8);
    }

    private byte[] readBytes() throws IOException {
        byte[] bytes = new byte[in.readInt()];
        in.readFully(bytes);
        return bytes;
    }

    private void writeBytes(byte[] bytes) throws IOException {
        out.writeInt(bytes.length);
        out.write(bytes);
    }

    private static void writeText(DataOutputStream out, String text) throws IOException {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        out.writeInt(bytes.length);
        out.write(bytes);
    }
}
