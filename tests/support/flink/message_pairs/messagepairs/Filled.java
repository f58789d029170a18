package messagepairs;

import com.google.protobuf.ByteString;
import com.google.protobuf.Descriptors.EnumValueDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Message;
import com.google.protobuf.TextFormat;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.thrift.TBase;
import org.apache.thrift.TFieldIdEnum;
import org.apache.thrift.TFieldRequirementType;
import org.apache.thrift.meta_data.EnumMetaData;
import org.apache.thrift.meta_data.FieldMetaData;
import org.apache.thrift.meta_data.FieldValueMetaData;
import org.apache.thrift.meta_data.ListMetaData;
import org.apache.thrift.meta_data.StructMetaData;

/** Values of generated Protobuf and Thrift classes, and their content as trees. */
public final class Filled {
    private Filled() {}

    /** A value of the class after the dollar sign. Of two values, only the first one has all optional fields. */
    public static Object of(String type, int n) throws Exception {
        Class<?> cls = Class.forName(type.substring(type.indexOf('$') + 1));
        if (TBase.class.isAssignableFrom(cls)) {
            return struct((TBase<?, ?>) cls.getConstructor().newInstance(), n);
        }
        Message.Builder builder = (Message.Builder) cls.getMethod("newBuilder").invoke(null);
        String text = "id: " + (1L << 40 | n) + " name: \"n" + n + "\" color: BLUE inner { a: " + n + " b: \"x\" } numbers: 1 numbers: -" + n
                + " stock { key: \"k\" value: " + n + " } raw: \"\\377" + n + "\"" + (n == 1 ? " text: \"t\"" : "");
        TextFormat.merge(text, builder);
        return builder.build();
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Object struct(TBase struct, int n) throws Exception {
        for (FieldMetaData field : fields(struct).values()) {
            TFieldIdEnum id = id(struct, field.fieldName);
            if (n == 1 || field.requirementType != TFieldRequirementType.OPTIONAL) {
                struct.setFieldValue(id, value(id.getFieldName(), field.valueMetaData, n));
            }
        }
        return struct;
    }

    private static Object value(String name, FieldValueMetaData type, int n) throws Exception {
        switch (name) {
            case "id":
                return 1L << 40 | n;
            case "numbers":
                return List.of(1, -n);
            case "longs":
                return List.of(1L, (long) -n);
            case "kinds":
                Class<?> kind = ((EnumMetaData) ((ListMetaData) type).elemMetaData).enumClass;
                return List.of(kind.getEnumConstants()[0], kind.getEnumConstants()[1]);
            case "kind":
                return ((EnumMetaData) type).enumClass.getEnumConstants()[1];
            case "stock":
                return Map.of("k", n);
            case "inner":
                return struct((TBase<?, ?>) ((StructMetaData) type).structClass.getConstructor().newInstance(), n);
            case "a":
                return n;
            default:
                return name + n;
        }
    }

    /** All fields of a message or struct: with nothing for a field that is not set. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    public static Object tree(Object value) throws Exception {
        if (value instanceof Message) {
            Message message = (Message) value;
            Map<String, Object> out = new TreeMap<>();
            for (FieldDescriptor field : message.getDescriptorForType().getFields()) {
                boolean unset = field.getJavaType() == FieldDescriptor.JavaType.MESSAGE && !field.isRepeated() && !message.hasField(field);
                out.put(field.getName(), unset ? null : tree(message.getField(field)));
            }
            return out;
        }
        if (value instanceof TBase) {
            TBase struct = (TBase) value;
            Map<String, Object> out = new TreeMap<>();
            for (FieldMetaData field : fields(struct).values()) {
                TFieldIdEnum id = id(struct, field.fieldName);
                out.put(field.fieldName, struct.isSet(id) ? tree(struct.getFieldValue(id)) : null);
            }
            return out;
        }
        if (value instanceof EnumValueDescriptor) {
            return ((EnumValueDescriptor) value).getName();
        }
        if (value instanceof Enum) {
            return ((Enum<?>) value).name();
        }
        if (value instanceof ByteString) {
            return tree(((ByteString) value).toByteArray());
        }
        if (value instanceof byte[] || value instanceof ByteBuffer) {
            StringBuilder hex = new StringBuilder("hex ");
            for (byte b : value instanceof byte[] ? (byte[]) value : ((ByteBuffer) value).array()) {
                hex.append(String.format("%02x", b));
            }
            return hex.toString();
        }
        if (value instanceof Map) {
            return tree(((Map<?, ?>) value).entrySet());
        }
        if (value instanceof Map.Entry) {
            return tree(List.of(((Map.Entry<?, ?>) value).getKey(), ((Map.Entry<?, ?>) value).getValue()));
        }
        if (value instanceof Collection) {
            List<Object> items = new ArrayList<>();
            for (Object item : (Collection<?>) value) {
                items.add(tree(item));
            }
            return items;
        }
        return value;
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Map<? extends TFieldIdEnum, FieldMetaData> fields(TBase struct) {
        return FieldMetaData.getStructMetaDataMap(struct.getClass());
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static TFieldIdEnum id(TBase struct, String name) {
        return ((Map<TFieldIdEnum, FieldMetaData>) fields(struct)).entrySet().stream()
                .filter(e -> e.getValue().fieldName.equals(name)).findFirst().get().getKey();
    }
}
