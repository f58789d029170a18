package harness;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.api.common.typeutils.base.LongSerializer;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.table.api.dataview.MapView;
import org.apache.flink.table.catalog.ObjectIdentifier;
import org.apache.flink.table.dataview.NullSerializer;
import org.apache.flink.table.runtime.typeutils.InternalSerializers;
import org.apache.flink.table.types.extraction.DataTypeExtractor;
import org.apache.flink.table.types.logical.BigIntType;
import org.apache.flink.table.types.logical.DistinctType;
import org.apache.flink.table.types.logical.IntType;
import org.apache.flink.table.types.logical.LocalZonedTimestampType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.RawType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.table.types.logical.TimestampKind;
import org.apache.flink.table.types.logical.TimestampType;
import org.apache.flink.table.types.logical.utils.LogicalTypeParser;
import org.apache.flink.util.InstantiationUtil;

/**
 * What Flink writes of logical types: the Java object of the type, that of its serializer, and the serializer's snapshot, in
 * hexadecimal. Types that have no text are made here, by the name that statetool has for them.
 */
final class LogicalTypes {
    private LogicalTypes() {}

    /** A class of a structured type, which is not serializable. */
    public static final class Money {
        public long amount;
        public String currency;
    }

    static Map<String, Object> describe(JsonNode request) throws Exception {
        Map<String, LogicalType> types = new LinkedHashMap<>();
        for (JsonNode text : request.get("types")) {
            types.put(text.asText(), LogicalTypeParser.parse(text.asText(), LogicalTypes.class.getClassLoader()));
        }
        types.putAll(others());
        Map<String, Object> found = new LinkedHashMap<>();
        for (Map.Entry<String, LogicalType> type : types.entrySet()) {
            Map<String, Object> one = new LinkedHashMap<>();
            try {
                one.put("type", hex(InstantiationUtil.serializeObject(type.getValue())));
            } catch (java.io.NotSerializableException e) {
                continue; // a name that is no type in this release
            }
            try {
                TypeSerializer<?> serializer = InternalSerializers.create(type.getValue());
                DataOutputSerializer out = new DataOutputSerializer(1024);
                TypeSerializerSnapshot.writeVersionedSnapshot(out, serializer.snapshotConfiguration());
                one.put("serializer", hex(InstantiationUtil.serializeObject(serializer)));
                one.put("snapshot", hex(out.getCopyOfBuffer()));
            } catch (UnsupportedOperationException e) {
                // A type that state cannot hold.
            }
            found.put(type.getKey(), one);
        }
        return Values.single("types", found);
    }

    private static Map<String, LogicalType> others() {
        Map<String, LogicalType> types = new LinkedHashMap<>();
        types.put("TIMESTAMP(3) *ROWTIME*", new TimestampType(true, TimestampKind.ROWTIME, 3));
        types.put("TIMESTAMP_LTZ(3) *PROCTIME* NOT NULL", new LocalZonedTimestampType(false, TimestampKind.PROCTIME, 3));
        String money = Money.class.getName();
        types.put("RAW('" + money + "', '" + LongSerializer.class.getName() + "')", counter());
        @SuppressWarnings({"unchecked", "rawtypes"})
        RawType<?> view = new RawType<>(MapView.class, (TypeSerializer) NullSerializer.INSTANCE);
        types.put("RAW('" + MapView.class.getName() + "', '" + NullSerializer.class.getName() + "')", view);
        DistinctType distinct = DistinctType.newBuilder(ObjectIdentifier.of("cat", "db", "kind"), new BigIntType()).build();
        types.put("DISTINCT<`cat`.`db`.`kind`, BIGINT>", distinct);
        types.put("STRUCTURED<'" + money + "', amount BIGINT NOT NULL, currency STRING>", money());
        String inside = "DISTINCT<`cat`.`db`.`kind`, BIGINT>, b STRUCTURED<'" + money
                + "', amount BIGINT NOT NULL, currency STRING>, c RAW('" + money + "', '"
                + LongSerializer.class.getName() + "')";
        LogicalType row = RowType.of(
                new LogicalType[] {
                    DistinctType.newBuilder(ObjectIdentifier.of("cat", "db", "kind"), new BigIntType()).build(),
                    money(),
                    counter(),
                },
                new String[] {"a", "b", "c"});
        types.put("ROW<a " + inside + ">", row);
        types.put("ARRAY<ROW<a " + inside + ">>", new org.apache.flink.table.types.logical.ArrayType(row));
        List<LogicalType> many = new ArrayList<>();
        StringBuilder words = new StringBuilder();
        for (int i = 0; i < 140; i++) {
            many.add(new IntType());
            words.append(i == 0 ? "" : ", ").append("f").append(i).append(" INT");
        }
        LogicalType wide = RowType.of(many.toArray(new LogicalType[0]));
        types.put("ARRAY<ROW<" + words + ">>", new org.apache.flink.table.types.logical.ArrayType(wide));
        return types;
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static LogicalType counter() {
        return new RawType<>(Money.class, (TypeSerializer) LongSerializer.INSTANCE);
    }

    /** As Flink finds it out from the class. */
    private static LogicalType money() {
        return DataTypeExtractor.extractFromType(null, Money.class).getLogicalType();
    }

    private static String hex(byte[] bytes) {
        StringBuilder text = new StringBuilder();
        for (byte b : bytes) {
            text.append(String.format("%02x", b));
        }
        return text.toString();
    }
}
