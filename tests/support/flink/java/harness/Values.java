package harness;

import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.Date;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.java.tuple.Tuple;
import org.apache.flink.api.java.typeutils.GenericTypeInfo;
import org.apache.flink.runtime.state.VoidNamespace;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.windowing.windows.GlobalWindow;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.table.data.binary.BinarySection;
import org.apache.flink.table.data.binary.BinarySegmentUtils;
import org.apache.flink.types.Either;
import org.apache.flink.types.Row;
import org.apache.flink.types.Value;

/** Values as trees of maps, lists, numbers and strings that Jackson writes: the encoding of the corpora's expected.json. */
final class Values {
    private static final Map<Class<?>, Boolean> GENERIC = new ConcurrentHashMap<>();
    private static final Map<Class<?>, List<Field>> FIELDS = new ConcurrentHashMap<>();
    /** The objects whose fields are being read: one of them may be inside itself. */
    private static final ThreadLocal<Set<Object>> OPEN = ThreadLocal.withInitial(
            () -> Collections.newSetFromMap(new IdentityHashMap<>()));

    private Values() {}

    static Object of(Object v) {
        if (v == null || v instanceof VoidNamespace) {
            return null;
        }
        if (v instanceof Float || v instanceof Double) {
            double d = ((Number) v).doubleValue();
            return Double.isNaN(d) || Double.isInfinite(d) ? single("$double", Double.toString(d)) : (Object) d;
        }
        if (v instanceof BigDecimal) {
            return single("$decimal", ((BigDecimal) v).toPlainString());
        }
        if (v instanceof java.math.BigInteger) {
            return single("$decimal", v.toString());
        }
        if (v instanceof Number || v instanceof Boolean || v instanceof String) {
            return v;
        }
        if (v instanceof Character) {
            return v.toString();
        }
        if (v instanceof Enum) {
            return ((Enum<?>) v).name();
        }
        Object found = temporal(v);
        return found != null ? found : composite(v);
    }

    private static Object temporal(Object v) {
        if (v instanceof java.sql.Date || v instanceof java.sql.Time) {
            return v.toString();
        }
        if (v instanceof java.sql.Timestamp) {
            return ((java.sql.Timestamp) v).toInstant().toString();
        }
        if (v instanceof Date) {
            return ((Date) v).toInstant().toString();
        }
        return v instanceof java.time.temporal.Temporal ? v.toString() : null;
    }

    private static Object composite(Object v) {
        if (v instanceof byte[]) {
            return single("$hex", hex((byte[]) v));
        }
        if (v.getClass().isArray()) {
            List<Object> items = new ArrayList<>();
            for (int i = 0; i < Array.getLength(v); i++) {
                items.add(of(Array.get(v, i)));
            }
            return items;
        }
        if (v instanceof Tuple) {
            List<Object> items = new ArrayList<>();
            for (int i = 0; i < ((Tuple) v).getArity(); i++) {
                items.add(of(((Tuple) v).getField(i)));
            }
            return items;
        }
        if (v instanceof Map) {
            return single("$map", entries(((Map<?, ?>) v).entrySet()));
        }
        if (v instanceof Set) {
            return single("$set", list((Set<?>) v));
        }
        if (v instanceof Collection) {
            return list((Collection<?>) v);
        }
        if (v instanceof Row) {
            Row row = (Row) v;
            List<Object> items = new ArrayList<>();
            for (int i = 0; i < row.getArity(); i++) {
                items.add(of(row.getField(i)));
            }
            Map<String, Object> out = single("$row", items);
            out.put("kind", row.getKind().name());
            return out;
        }
        if (v instanceof Either) {
            Either<?, ?> e = (Either<?, ?>) v;
            return e.isLeft() ? single("$left", of(e.left())) : single("$right", of(e.right()));
        }
        return flinks(v);
    }

    private static Object flinks(Object v) {
        if (v instanceof BinarySection) { // rows, arrays and maps of SQL
            BinarySection s = (BinarySection) v;
            return single("$hex", hex(BinarySegmentUtils.copyToBytes(s.getSegments(), s.getOffset(), s.getSizeInBytes())));
        }
        if (v instanceof TimeWindow) {
            Map<String, Object> out = single("start", ((TimeWindow) v).getStart());
            out.put("end", ((TimeWindow) v).getEnd());
            return out;
        }
        if (v instanceof GlobalWindow) {
            return "GlobalWindow";
        }
        if (v instanceof StreamRecord) {
            StreamRecord<?> r = (StreamRecord<?>) v;
            Map<String, Object> out = single("value", of(r.getValue()));
            out.put("timestamp", r.hasTimestamp() ? r.getTimestamp() : null);
            return out;
        }
        try {
            if (v instanceof Value) {
                return of(Reflect.call(v, "getValue"));
            }
            for (Class<?> i : v.getClass().getInterfaces()) {
                if (i.getName().equals("org.apache.flink.types.variant.Variant")) {
                    return single("$variant", new ObjectMapper().readValue((String) Reflect.call(v, "toJson"), Object.class));
                }
            }
            if (isAvro(v.getClass())) {
                return single("$avro", new ObjectMapper().readValue(v.toString(), Object.class));
            }
            if (isMessage(v.getClass())) {
                return single("$message", Class.forName("messagepairs.Filled").getMethod("tree", Object.class).invoke(null, v));
            }
            if (v.getClass().getName().contains("Bitmap")) {
                return single("$bitmap", of(Reflect.call(v, "toArray")));
            }
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
        return fields(v);
    }

    private static boolean isAvro(Class<?> cls) {
        for (Class<?> c = cls; c != null; c = c.getSuperclass()) {
            if (c.getName().equals("org.apache.avro.generic.GenericData$Record")
                    || c.getName().equals("org.apache.avro.specific.SpecificRecordBase")) {
                return true;
            }
        }
        return false;
    }

    private static boolean isMessage(Class<?> cls) {
        return cls != Object.class && cls.getSuperclass().getName().startsWith("com.google.protobuf.")
                || Arrays.stream(cls.getInterfaces()).anyMatch(i -> i.getName().equals("org.apache.thrift.TBase"));
    }

    private static Object fields(Object v) {
        Class<?> cls = v.getClass();
        if (v instanceof java.util.UUID) {
            return kryo(cls, v.toString());
        }
        if (!OPEN.get().add(v)) {
            return single("$again", cls.getName());
        }
        Map<String, Object> out = new TreeMap<>();
        try {
            for (Field f : FIELDS.computeIfAbsent(cls, Values::allFields)) {
                out.put(f.getName(), of(f.get(v)));
            }
        } catch (IllegalAccessException e) {
            throw new IllegalStateException(e);
        } finally {
            OPEN.get().remove(v);
        }
        if (GENERIC.computeIfAbsent(cls, Values::isGeneric)) {
            return kryo(cls, out);
        }
        if (isOpen(cls)) {
            out.put("$class", cls.getName());
        }
        return out;
    }

    /** Of a class with type parameters the type extraction knows nothing without their values; it is a POJO here. */
    private static boolean isGeneric(Class<?> cls) {
        return cls.getTypeParameters().length == 0 && TypeInformation.of(cls) instanceof GenericTypeInfo;
    }

    private static Map<String, Object> kryo(Class<?> cls, Object value) {
        Map<String, Object> out = single("$kryo", cls.getName());
        out.put("value", value);
        return out;
    }

    private static List<Field> allFields(Class<?> cls) {
        List<Field> found = new ArrayList<>();
        for (Class<?> c = cls; c != Object.class; c = c.getSuperclass()) {
            for (Field f : c.getDeclaredFields()) {
                if (!Modifier.isStatic(f.getModifiers()) && !Modifier.isTransient(f.getModifiers())) {
                    f.setAccessible(true);
                    found.add(f);
                }
            }
        }
        return found;
    }

    /** Whether the class has a superclass or, among its neighbours, subclasses. */
    private static boolean isOpen(Class<?> cls) {
        if (cls.getSuperclass() != Object.class) {
            return true;
        }
        Class<?> outer = cls.getEnclosingClass();
        return outer != null
                && Arrays.stream(outer.getDeclaredClasses()).anyMatch(c -> c != cls && cls.isAssignableFrom(c));
    }

    static List<Object> entries(Iterable<? extends Map.Entry<?, ?>> entries) {
        List<Object> rows = new ArrayList<>();
        for (Map.Entry<?, ?> e : entries) {
            rows.add(Arrays.asList(of(e.getKey()), of(e.getValue())));
        }
        return rows;
    }

    static List<Object> list(Iterable<?> items) {
        List<Object> out = new ArrayList<>();
        for (Object item : items) {
            out.add(of(item));
        }
        return out;
    }

    static Map<String, Object> single(String name, Object value) {
        Map<String, Object> out = new LinkedHashMap<>();
        out.put(name, value);
        return out;
    }

    static String hex(byte[] data) {
        StringBuilder out = new StringBuilder();
        for (byte b : data) {
            out.append(String.format("%02x", b));
        }
        return out.toString();
    }
}
