package harness;

import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.logical.BigIntType;
import org.apache.flink.table.types.logical.DoubleType;
import org.apache.flink.table.types.logical.IntType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.table.types.logical.VarCharType;

/** Rows of the table runtime, as SQL jobs keep them. */
final class RowDatas {
    private RowDatas() {}

    static TypeInformation<?> type(TypeInformation<?>[] fields) {
        LogicalType[] types = new LogicalType[fields.length];
        for (int i = 0; i < fields.length; i++) {
            types[i] = logical(fields[i].getTypeClass());
        }
        return InternalTypeInfo.ofFields(types);
    }

    private static LogicalType logical(Class<?> cls) {
        if (cls == Integer.class) {
            return new IntType();
        }
        if (cls == Long.class) {
            return new BigIntType();
        }
        if (cls == Double.class) {
            return new DoubleType();
        }
        if (cls == String.class) {
            return new VarCharType(VarCharType.MAX_LENGTH);
        }
        throw new IllegalArgumentException("no column of " + cls);
    }

    /** The values of a row, by the getters of its types. */
    static Object fields(Object row, TypeInformation<?> type) {
        RowType types = (RowType) ((InternalTypeInfo<?>) type).toLogicalType();
        List<Object> found = new ArrayList<>();
        for (int i = 0; i < types.getFieldCount(); i++) {
            Object value = RowData.createFieldGetter(types.getTypeAt(i), i).getFieldOrNull((RowData) row);
            found.add(value instanceof Number ? Values.of(value) : value == null ? null : value.toString());
        }
        return found;
    }
}
