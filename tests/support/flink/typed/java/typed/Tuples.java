package typed;

import java.util.List;
import org.apache.flink.api.java.tuple.*;
import org.apache.flink.types.*;

/** Flink's own types as fields. */
public class Tuples {
    public static class Coordinates extends Tuple2<Integer, Long> { public Coordinates() { } }

    public static class Named<T> extends Tuple2<String, T> { }

    public static class NamedText extends Named<String> { }

    /** A tuple with a field of its own is a POJO. */
    public static class Wider extends Tuple2<Integer, Long> { public int extra; }

    public static class PrivateExtra extends Tuple2<Integer, Long> { private int extra; }

    @SuppressWarnings("rawtypes")
    public static class RawTuple extends Tuple2 { }

    @SuppressWarnings("rawtypes")
    public static class Holder {
        public Tuple0 t0; public Tuple1<String> t1; public Tuple2<String, Integer> t2; public Tuple3<String, Integer, Long> t3;
        public Tuple2 raw; public Tuple anyTuple; public Tuple2<?, String> wildcard; public Tuple2<? extends Number, String> upper;
        public Tuple2<Tuple2<String, Integer>, Tuple1<Long>> nested; public Tuple2<String[], int[]> arrays; public Tuple2<List<String>, String> list;
        public Tuple2<Shapes.Item, Shapes.Hidden> items; public Tuple2<String, Integer>[] array; public Tuple2[] rawArray; public Tuple2<Basics.Color, Object> color;
        public Coordinates coordinates; public Named<Long> named; public NamedText namedText; public Wider wider; public PrivateExtra privateExtra;
        public RawTuple rawTuple; public Coordinates[] coordinateArray; public Tuple2<Coordinates, Named<String>> subclasses;
        public Tuple5<Boolean, Byte, Short, Character, Double> t5; public Tuple2<Shapes.Linked, String> linked; public Tuple2<Generics.Box<String>, String> box;
        public Tuple4<java.math.BigDecimal, java.time.Instant, java.sql.Timestamp, java.util.Date> times;
        public Tuple25<String, String, String, String, String, String, String, String, String, String, String, String, String, String, String, String, String, String, String, String, String, String, String, String, Integer> t25;
        public Tuple1<Shapes.Point> point; public Tuple2<Void, Class<?>> odd; public Tuple2<java.util.Map<String, Integer>, java.util.Set<String>> maps;
    }

    @SuppressWarnings("rawtypes")
    public static class Eithers {
        public Either<String, Integer> either; public Either raw; public Either<?, ?> any; public Either<Shapes.Item, List<String>> item;
        public Either<String, Either<Integer, Long>> nested; public Either.Left<String, Integer> left; public Either.Right<String, Integer> right;
        public Either<String, Integer>[] array; public Tuple2<Either<String, Integer>, String> inTuple; public List<Either<String, Integer>> inList;
        public Either<Object, Object> objects;
    }

    public static class OwnValue implements Value {
        public int n;
        @Override public void write(org.apache.flink.core.memory.DataOutputView out) { }
        @Override public void read(org.apache.flink.core.memory.DataInputView in) { }
    }

    public static class OwnCopyable implements CopyableValue<OwnCopyable> {
        public int n;
        @Override public int getBinaryLength() { return 4; } @Override public void copyTo(OwnCopyable target) { }
        @Override public OwnCopyable copy() { return this; }
        @Override public void copy(org.apache.flink.core.memory.DataInputView in, org.apache.flink.core.memory.DataOutputView out) { }
        @Override public void write(org.apache.flink.core.memory.DataOutputView out) { }
        @Override public void read(org.apache.flink.core.memory.DataInputView in) { }
    }

    public static class OwnMap extends MapValue<StringValue, IntValue> { }

    public static class OwnList extends ListValue<StringValue> { }

    public static class BelowInt extends IntValue { }

    public static class Values {
        public BooleanValue flag; public ByteValue octet; public ShortValue small; public CharValue letter; public IntValue number; public LongValue big;
        public FloatValue single; public DoubleValue real; public StringValue text; public NullValue nothing; public OwnValue own; public OwnCopyable copyable;
        public OwnMap map; public OwnList list; public BelowInt below; public Value any; public CopyableValue<?> anyCopyable; public StringValue[] texts;
        public org.apache.flink.types.Record record; public Tuple2<IntValue, StringValue> inTuple; public List<IntValue> inList; public Key<?> key;
    }

    public static class Tables {
        public Row row; public Row[] rows; public RowKind kind; public org.apache.flink.table.data.RowData data; public org.apache.flink.table.data.GenericRowData generic;
        public org.apache.flink.table.data.StringData string; public org.apache.flink.table.data.DecimalData decimal; public org.apache.flink.table.data.TimestampData timestamp;
        public org.apache.flink.table.data.binary.BinaryRowData binary; public org.apache.flink.table.data.ArrayData array; public org.apache.flink.table.data.MapData map;
        public Tuple2<String, Row> inTuple; public List<Row> inList; public org.apache.flink.streaming.api.windowing.windows.TimeWindow window;
        public org.apache.flink.streaming.api.windowing.windows.GlobalWindow global; public org.apache.flink.api.common.JobID job;
        public org.apache.flink.core.fs.Path path; public org.apache.flink.util.OutputTag<String> tag; public org.apache.flink.configuration.Configuration configuration;
        public org.apache.flink.configuration.MemorySize size; public org.apache.flink.core.io.InputSplit split; public org.apache.flink.runtime.state.VoidNamespace namespace;
        public org.apache.flink.table.api.dataview.ListView<String> listView; public org.apache.flink.table.api.dataview.MapView<String, Integer> mapView;
        public org.apache.flink.streaming.runtime.streamrecord.StreamRecord<String> streamRecord;
    }
}
