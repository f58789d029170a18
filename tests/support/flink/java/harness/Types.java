package harness;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.typeinfo.BasicTypeInfo;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.java.typeutils.EitherTypeInfo;
import org.apache.flink.api.java.typeutils.GenericTypeInfo;
import org.apache.flink.api.java.typeutils.ListTypeInfo;
import org.apache.flink.api.java.typeutils.MapTypeInfo;
import org.apache.flink.api.java.typeutils.ObjectArrayTypeInfo;
import org.apache.flink.api.java.typeutils.RowTypeInfo;
import org.apache.flink.api.java.typeutils.TupleTypeInfo;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.logical.utils.LogicalTypeParser;

/**
 * Types as text, as a user's job would declare them: {@code LONG}, {@code MAP<STRING,LIST<INT>>}, {@code TUPLE<..>}, {@code
 * ROW<..>}, {@code ROWDATA<..>}, {@code EITHER<a,b>}, {@code ARRAY<..>}, {@code PRIMITIVES<INT>}, {@code KRYO<class>}; {@code SQL:}
 * and a type of SQL for internal data; {@code AVRO:} and a schema for generic records of Avro; anything else is the name of a class that Flink's type extraction looks at.
 */
final class Types {
    private static final Map<String, TypeInformation<?>> SIMPLE = new HashMap<>();

    static {
        Object[] all = {
            "STRING", BasicTypeInfo.STRING_TYPE_INFO, "BOOLEAN", BasicTypeInfo.BOOLEAN_TYPE_INFO,
            "BYTE", BasicTypeInfo.BYTE_TYPE_INFO, "SHORT", BasicTypeInfo.SHORT_TYPE_INFO,
            "INT", BasicTypeInfo.INT_TYPE_INFO, "LONG", BasicTypeInfo.LONG_TYPE_INFO,
            "FLOAT", BasicTypeInfo.FLOAT_TYPE_INFO, "DOUBLE", BasicTypeInfo.DOUBLE_TYPE_INFO,
            "CHAR", BasicTypeInfo.CHAR_TYPE_INFO, "BIGDEC", BasicTypeInfo.BIG_DEC_TYPE_INFO,
            "BIGINT", BasicTypeInfo.BIG_INT_TYPE_INFO, "DATE", BasicTypeInfo.DATE_TYPE_INFO,
            "INSTANT", BasicTypeInfo.INSTANT_TYPE_INFO,
        };
        for (int i = 0; i < all.length; i += 2) {
            SIMPLE.put((String) all[i], (TypeInformation<?>) all[i + 1]);
        }
        SIMPLE.put("LOCALDATE", org.apache.flink.api.common.typeinfo.Types.LOCAL_DATE);
        SIMPLE.put("LOCALTIME", org.apache.flink.api.common.typeinfo.Types.LOCAL_TIME);
        SIMPLE.put("LOCALDATETIME", org.apache.flink.api.common.typeinfo.Types.LOCAL_DATE_TIME);
        SIMPLE.put("SQLDATE", org.apache.flink.api.common.typeinfo.Types.SQL_DATE);
        SIMPLE.put("SQLTIME", org.apache.flink.api.common.typeinfo.Types.SQL_TIME);
        SIMPLE.put("SQLTIMESTAMP", org.apache.flink.api.common.typeinfo.Types.SQL_TIMESTAMP);
    }

    private final String text;
    private int at;

    private Types(String text) {
        this.text = text;
    }

    @SuppressWarnings("unchecked")
    static <T> TypeInformation<T> parse(String text) {
        if (text.startsWith("SQL:")) {
            return (TypeInformation<T>) InternalTypeInfo.of(LogicalTypeParser.parse(text.substring(4), Types.class.getClassLoader()));
        }
        if (text.startsWith("AVRO:")) {
            return (TypeInformation<T>) avro(text.substring(5));
        }
        Types parser = new Types(text.replace(" ", ""));
        TypeInformation<?> found = parser.type();
        if (parser.at != parser.text.length()) {
            throw new IllegalArgumentException("trailing characters in type " + text);
        }
        return (TypeInformation<T>) found;
    }

    private String word() {
        int start = at;
        while (at < text.length() && "<>,".indexOf(text.charAt(at)) < 0) {
            at++;
        }
        return text.substring(start, at);
    }

    private TypeInformation<?> type() {
        String name = word();
        if (at == text.length() || text.charAt(at) != '<') {
            TypeInformation<?> simple = SIMPLE.get(name);
            return simple != null ? simple : TypeInformation.of(load(name));
        }
        at++;
        if (name.equals("KRYO")) {
            Class<?> cls = load(word());
            at++;
            return new GenericTypeInfo<>(cls);
        }
        List<TypeInformation<?>> args = new ArrayList<>();
        do {
            args.add(type());
        } while (text.charAt(at++) == ',');
        return generic(name, args.toArray(new TypeInformation<?>[0]));
    }

    private static TypeInformation<?> generic(String name, TypeInformation<?>[] a) {
        switch (name) {
            case "TUPLE":
                return new TupleTypeInfo<>(a);
            case "ROW":
                return new RowTypeInfo(a);
            case "EITHER":
                return new EitherTypeInfo<>(a[0], a[1]);
            case "LIST":
                return new ListTypeInfo<>(a[0]);
            case "MAP":
                return new MapTypeInfo<>(a[0], a[1]);
            case "SET":
                // Since Flink 2.0 only, so not to be named at compile time.
                return (TypeInformation<?>) Reflect.create(
                        "org.apache.flink.api.java.typeutils.SetTypeInfo", TypeInformation.class, a[0]);
            case "ARRAY":
                if (a[0].getTypeClass() == String.class) {
                    return TypeInformation.of(String[].class);
                }
                return ObjectArrayTypeInfo.getInfoFor(a[0]);
            case "ROWDATA":
                return RowDatas.type(a);
            case "PRIMITIVES":
                return primitives(a[0].getTypeClass());
            default:
                throw new IllegalArgumentException("no type " + name);
        }
    }

    /** Only the jobs that are given flink-avro have it. */
    private static TypeInformation<?> avro(String schema) {
        try {
            Object parser = Class.forName("org.apache.avro.Schema$Parser").getConstructor().newInstance();
            return (TypeInformation<?>) Reflect.create(
                    "org.apache.flink.formats.avro.typeutils.GenericRecordAvroTypeInfo",
                    Class.forName("org.apache.avro.Schema"),
                    Reflect.call(parser, "parse", schema));
        } catch (Exception e) {
            throw new IllegalArgumentException(e);
        }
    }

    private static TypeInformation<?> primitives(Class<?> boxed) {
        try {
            Class<?> primitive = (Class<?>) boxed.getField("TYPE").get(null);
            return PrimitiveArrayTypeInfo.getInfoFor(java.lang.reflect.Array.newInstance(primitive, 0).getClass());
        } catch (ReflectiveOperationException e) {
            throw new IllegalArgumentException(e);
        }
    }

    private static Class<?> load(String name) {
        try {
            return Class.forName(name);
        } catch (ClassNotFoundException e) {
            throw new IllegalArgumentException("no type or class " + name, e);
        }
    }
}
