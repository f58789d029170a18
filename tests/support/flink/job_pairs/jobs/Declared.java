package jobs;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichFlatMapFunction;
import org.apache.flink.api.common.functions.RuntimeContext;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeHint;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.api.java.typeutils.TypeExtractor;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.util.Collector;

/** Adds to a sum of some type of number; every job below declares it in its own way. */
abstract class Counted<T extends Number> extends RichFlatMapFunction<String, String> {
    transient ValueState<T> sum;

    abstract T of(long number);

    @Override
    public void flatMap(String line, Collector<String> out) throws Exception {
        long before = sum.value() == null ? 0 : sum.value().longValue();
        sum.update(of(before + Job.number(line)));
        out.collect(line.split(",")[0] + "=" + sum.value());
    }
}

final class DeclaredStaticRetyped extends Job {
    static final class Keep extends Counted<Integer> { // old
    static final class Keep extends Counted<Long> { // new
        private static final ValueStateDescriptor<Integer> SUM = new ValueStateDescriptor<>("sum", Integer.class); // old
        private static final ValueStateDescriptor<Long> SUM = new ValueStateDescriptor<>("sum", Long.class); // new
        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(SUM);
        }

        @Override
        Integer of(long number) { // old
        Long of(long number) { // new
            return (int) number; // old
            return number; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class DeclaredElsewhereRetyped extends Job {
    static final class States {
        static final ValueStateDescriptor<Integer> SUM = new ValueStateDescriptor<>("sum", Types.INT); // old
        static final ValueStateDescriptor<Long> SUM = new ValueStateDescriptor<>("sum", Types.LONG); // new
    }
    static final class Keep extends Counted<Integer> { // old
    static final class Keep extends Counted<Long> { // new
        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(States.SUM);
        }

        @Override
        Integer of(long number) { // old
        Long of(long number) { // new
            return (int) number; // old
            return number; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

/** The descriptor is serialized with the function. */
final class DeclaredFieldRetyped extends Job {
    static final class Keep extends Counted<Integer> { // old
    static final class Keep extends Counted<Long> { // new
        private final ValueStateDescriptor<Integer> descriptor = new ValueStateDescriptor<>("sum", Types.INT); // old
        private final ValueStateDescriptor<Long> descriptor = new ValueStateDescriptor<>("sum", Types.LONG); // new
        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(descriptor);
        }

        @Override
        Integer of(long number) { // old
        Long of(long number) { // new
            return (int) number; // old
            return number; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

/** The descriptor is serialized with the function. */
final class DeclaredLazyRetyped extends Job {
    static final class Keep extends Counted<Integer> { // old
    static final class Keep extends Counted<Long> { // new
        private transient ValueStateDescriptor<Integer> descriptor; // old
        private transient ValueStateDescriptor<Long> descriptor; // new
        @Override
        public void open(OpenContext context) throws Exception {
            descriptor = new ValueStateDescriptor<>("sum", Types.INT); // old
            descriptor = new ValueStateDescriptor<>("sum", Types.LONG); // new
            sum = getRuntimeContext().getState(descriptor);
        }

        @Override
        Integer of(long number) { // old
        Long of(long number) { // new
            return (int) number; // old
            return number; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class DeclaredHelperRetyped extends Job {
    static ValueStateDescriptor<Integer> descriptor() { // old
    static ValueStateDescriptor<Long> descriptor() { // new
        return new ValueStateDescriptor<>("sum", Types.INT); // old
        return new ValueStateDescriptor<>("sum", Types.LONG); // new
    }
    static final class Keep extends Counted<Integer> { // old
    static final class Keep extends Counted<Long> { // new
        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(descriptor());
        }

        @Override
        Integer of(long number) { // old
        Long of(long number) { // new
            return (int) number; // old
            return number; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class DeclaredGenericHelperRetyped extends Job {
    static <E> ValueStateDescriptor<E> descriptor(String name, Class<E> type) {
        return new ValueStateDescriptor<>(name, type);
    }
    static final class Keep extends Counted<Integer> { // old
    static final class Keep extends Counted<Long> { // new
        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(descriptor("sum", Integer.class)); // old
            sum = getRuntimeContext().getState(descriptor("sum", Long.class)); // new
        }

        @Override
        Integer of(long number) { // old
        Long of(long number) { // new
            return (int) number; // old
            return number; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class DeclaredTypedHelperRetyped extends Job {
    static <E> ValueState<E> state(RuntimeContext context, String name, TypeInformation<E> type) {
        return context.getState(new ValueStateDescriptor<>(name, type));
    }
    static final class Keep extends Counted<Integer> { // old
    static final class Keep extends Counted<Long> { // new
        @Override
        public void open(OpenContext context) throws Exception {
            sum = state(getRuntimeContext(), "sum", Types.INT); // old
            sum = state(getRuntimeContext(), "sum", Types.LONG); // new
        }

        @Override
        Integer of(long number) { // old
        Long of(long number) { // new
            return (int) number; // old
            return number; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class DeclaredSupplierRetyped extends Job {
    static final class Keep extends Counted<Integer> { // old
    static final class Keep extends Counted<Long> { // new
        @Override
        public void open(OpenContext context) throws Exception {
            Supplier<ValueStateDescriptor<Integer>> made = () -> new ValueStateDescriptor<>("sum", Types.INT); // old
            Supplier<ValueStateDescriptor<Long>> made = () -> new ValueStateDescriptor<>("sum", Types.LONG); // new
            sum = getRuntimeContext().getState(made.get());
        }

        @Override
        Integer of(long number) { // old
        Long of(long number) { // new
            return (int) number; // old
            return number; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class DeclaredJoinedRetyped extends Job {
    static final class Keep extends Counted<Integer> { // old
    static final class Keep extends Counted<Long> { // new
        private static final String PREFIX = String.valueOf("su");
        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>(PREFIX + "m", Types.INT)); // old
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>(PREFIX + "m", Types.LONG)); // new
        }

        @Override
        Integer of(long number) { // old
        Long of(long number) { // new
            return (int) number; // old
            return number; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class DeclaredJoinedEdited extends Job {
    static final class Keep extends Counted<Integer> {
        private static final String PREFIX = String.valueOf("su");
        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>(PREFIX + "m", Types.INT));
        }

        @Override
        Integer of(long number) {
            int unused = 1; // old
            String unused = "x" + number; // new
            return (int) number;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class DeclaredConstantRetyped extends Job {
    interface Names {
        String SUM = "sum";
    }
    static final class Keep extends Counted<Integer> { // old
    static final class Keep extends Counted<Long> { // new
        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>(Names.SUM, Types.INT)); // old
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>(Names.SUM, Types.LONG)); // new
        }

        @Override
        Integer of(long number) { // old
        Long of(long number) { // new
            return (int) number; // old
            return number; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class DeclaredEnumNameRetyped extends Job {
    enum Names {
        SUM, OTHER
    }
    static final class Keep extends Counted<Integer> { // old
    static final class Keep extends Counted<Long> { // new
        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>(Names.SUM.name(), Types.INT)); // old
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>(Names.SUM.name(), Types.LONG)); // new
        }

        @Override
        Integer of(long number) { // old
        Long of(long number) { // new
            return (int) number; // old
            return number; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class DeclaredSuperRetyped extends Job {
    abstract static class Base<T extends Number> extends Counted<T> {
        abstract TypeInformation<T> type();

        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", type()));
        }
    }
    static final class Keep extends Base<Integer> { // old
    static final class Keep extends Base<Long> { // new
        @Override
        TypeInformation<Integer> type() { // old
        TypeInformation<Long> type() { // new
            return Types.INT; // old
            return Types.LONG; // new
        }

        @Override
        Integer of(long number) { // old
        Long of(long number) { // new
            return (int) number; // old
            return number; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class DeclaredSuperEdited extends Job {
    abstract static class Base<T extends Number> extends Counted<T> {
        abstract TypeInformation<T> type();

        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", type()));
        }
    }
    static final class Keep extends Base<Integer> {
        @Override
        TypeInformation<Integer> type() {
            return Types.INT;
        }

        @Override
        Integer of(long number) {
            int unused = 1; // old
            String unused = "x" + number; // new
            return (int) number;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class DeclaredSuperDescriptorRetyped extends Job {
    abstract static class Base extends Counted<Integer> { // old
    abstract static class Base extends Counted<Long> { // new
        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT)); // old
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.LONG)); // new
        }
    }
    static final class Keep extends Base {
        @Override
        Integer of(long number) { // old
        Long of(long number) { // new
            return (int) number; // old
            return number; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class DeclaredSuperConstructorRetyped extends Job {
    abstract static class Base<T extends Number> extends Counted<T> {
        private final TypeInformation<T> type;

        Base(TypeInformation<T> type) {
            this.type = type;
        }

        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", type));
        }
    }
    static final class Keep extends Base<Integer> { // old
    static final class Keep extends Base<Long> { // new
        Keep() {
            super(Types.INT); // old
            super(Types.LONG); // new
        }

        @Override
        Integer of(long number) { // old
        Long of(long number) { // new
            return (int) number; // old
            return number; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class DeclaredHintRetyped extends Job {
    static final class Keep extends Counted<Integer> { // old
    static final class Keep extends Counted<Long> { // new
        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", TypeInformation.of(new TypeHint<Integer>() {}))); // old
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", TypeInformation.of(new TypeHint<Long>() {}))); // new
        }

        @Override
        Integer of(long number) { // old
        Long of(long number) { // new
            return (int) number; // old
            return number; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class DeclaredHintStaticRetyped extends Job {
    static final class Keep extends Counted<Integer> { // old
    static final class Keep extends Counted<Long> { // new
        private static final TypeInformation<Integer> TYPE = TypeInformation.of(new TypeHint<Integer>() {}); // old
        private static final TypeInformation<Long> TYPE = TypeInformation.of(new TypeHint<Long>() {}); // new
        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", TYPE));
        }

        @Override
        Integer of(long number) { // old
        Long of(long number) { // new
            return (int) number; // old
            return number; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class DeclaredHintStaticEdited extends Job {
    static final class Keep extends Counted<Integer> {
        private static final TypeInformation<Integer> TYPE = TypeInformation.of(new TypeHint<Integer>() {});
        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", TYPE));
        }

        @Override
        Integer of(long number) {
            int unused = 1; // old
            String unused = "x" + number; // new
            return (int) number;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class DeclaredExtractorRetyped extends Job {
    static final class Keep extends Counted<Integer> { // old
    static final class Keep extends Counted<Long> { // new
        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", TypeExtractor.getForClass(Integer.class))); // old
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", TypeExtractor.getForClass(Long.class))); // new
        }

        @Override
        Integer of(long number) { // old
        Long of(long number) { // new
            return (int) number; // old
            return number; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class DeclaredClassFieldRetyped extends Job {
    static final class Keep extends Counted<Integer> { // old
    static final class Keep extends Counted<Long> { // new
        private final Class<Integer> type = Integer.class; // old
        private final Class<Long> type = Long.class; // new
        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", type));
        }

        @Override
        Integer of(long number) { // old
        Long of(long number) { // new
            return (int) number; // old
            return number; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class DeclaredClassFieldEdited extends Job {
    static final class Keep extends Counted<Integer> {
        private final Class<Integer> type = Integer.class;
        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", type));
        }

        @Override
        Integer of(long number) {
            int unused = 1; // old
            String unused = "x" + number; // new
            return (int) number;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class DeclaredSubclassRetyped extends Job {
    static final class SumDescriptor extends ValueStateDescriptor<Integer> { // old
    static final class SumDescriptor extends ValueStateDescriptor<Long> { // new
        SumDescriptor() {
            super("sum", Types.INT); // old
            super("sum", Types.LONG); // new
        }
    }
    static final class Keep extends Counted<Integer> { // old
    static final class Keep extends Counted<Long> { // new
        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new SumDescriptor());
        }

        @Override
        Integer of(long number) { // old
        Long of(long number) { // new
            return (int) number; // old
            return number; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class DeclaredDefaultRetyped extends Job {
    static final class Keep extends Counted<Integer> { // old
    static final class Keep extends Counted<Long> { // new
        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<Integer>("sum", Integer.class, null)); // old
            sum = getRuntimeContext().getState(new ValueStateDescriptor<Long>("sum", Long.class, null)); // new
        }

        @Override
        Integer of(long number) { // old
        Long of(long number) { // new
            return (int) number; // old
            return number; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class DeclaredSerializerRetyped extends Job {
    static final class Keep extends Counted<Integer> { // old
    static final class Keep extends Counted<Long> { // new
        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT.createSerializer(new org.apache.flink.api.common.serialization.SerializerConfigImpl()))); // old
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.LONG.createSerializer(new org.apache.flink.api.common.serialization.SerializerConfigImpl()))); // new
        }

        @Override
        Integer of(long number) { // old
        Long of(long number) { // new
            return (int) number; // old
            return number; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class DeclaredInitializedRetyped extends Job {
    static final class Keep extends Counted<Integer> implements CheckpointedFunction { // old
    static final class Keep extends Counted<Long> implements CheckpointedFunction { // new
        @Override
        public void initializeState(FunctionInitializationContext context) throws Exception {
            sum = context.getKeyedStateStore().getState(new ValueStateDescriptor<>("sum", Types.INT)); // old
            sum = context.getKeyedStateStore().getState(new ValueStateDescriptor<>("sum", Types.LONG)); // new
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) {}

        @Override
        Integer of(long number) { // old
        Long of(long number) { // new
            return (int) number; // old
            return number; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class DeclaredLoopRetyped extends Job {
    static final class Keep extends RichFlatMapFunction<String, String> {
        private static final String[] NAMES = {"first", "second"};
        private transient List<ValueState<Integer>> all; // old
        private transient List<ValueState<Long>> all; // new

        @Override
        public void open(OpenContext context) throws Exception {
            all = new ArrayList<>();
            for (String name : NAMES) {
                all.add(getRuntimeContext().getState(new ValueStateDescriptor<>(name, Types.INT))); // old
                all.add(getRuntimeContext().getState(new ValueStateDescriptor<>(name, Types.LONG))); // new
            }
        }

        @Override
        public void flatMap(String line, Collector<String> out) throws Exception {
            for (ValueState<Integer> sum : all) { // old
            for (ValueState<Long> sum : all) { // new
                long number = Job.number(line) + (sum.value() == null ? 0 : sum.value().longValue());
                sum.update((int) number); // old
                sum.update(number); // new
                out.collect(line.split(",")[0] + "=" + sum.value());
            }
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class DeclaredRegistryRetyped extends Job {
    static final class Registry {
        private final Map<String, ValueState<?>> all = new HashMap<>();
        private final RuntimeContext context;

        Registry(RuntimeContext context) {
            this.context = context;
        }

        @SuppressWarnings("unchecked")
        <E> ValueState<E> get(String name, TypeInformation<E> type) {
            return (ValueState<E>) all.computeIfAbsent(name, n -> context.getState(new ValueStateDescriptor<>(n, type)));
        }
    }
    static final class Keep extends Counted<Integer> { // old
    static final class Keep extends Counted<Long> { // new
        @Override
        public void open(OpenContext context) throws Exception {
            sum = new Registry(getRuntimeContext()).get("sum", Types.INT); // old
            sum = new Registry(getRuntimeContext()).get("sum", Types.LONG); // new
        }

        @Override
        Integer of(long number) { // old
        Long of(long number) { // new
            return (int) number; // old
            return number; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class DeclaredTernaryRetyped extends Job {
    static final class Keep extends Counted<Integer> { // old
    static final class Keep extends Counted<Long> { // new
        private final boolean isLong = false;
        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>(isLong ? "long" : "sum", Types.INT)); // old
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>(isLong ? "long" : "sum", Types.LONG)); // new
        }

        @Override
        Integer of(long number) { // old
        Long of(long number) { // new
            return (int) number; // old
            return number; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class DeclaredBuilderRetyped extends Job {
    static final class Builder {
        private String name;

        Builder name(String name) {
            this.name = name;
            return this;
        }

        ValueStateDescriptor<Integer> build() { // old
        ValueStateDescriptor<Long> build() { // new
            return new ValueStateDescriptor<>(name, Types.INT); // old
            return new ValueStateDescriptor<>(name, Types.LONG); // new
        }
    }
    static final class Keep extends Counted<Integer> { // old
    static final class Keep extends Counted<Long> { // new
        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new Builder().name("sum").build());
        }

        @Override
        Integer of(long number) { // old
        Long of(long number) { // new
            return (int) number; // old
            return number; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class DeclaredUidMethodRetyped extends Job {
    static String uid() {
        return "sums";
    }
    static final class Keep extends Counted<Integer> { // old
    static final class Keep extends Counted<Long> { // new
        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT)); // old
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.LONG)); // new
        }

        @Override
        Integer of(long number) { // old
        Long of(long number) { // new
            return (int) number; // old
            return number; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid(uid());
    }
}

final class DeclaredUidMethodEdited extends Job {
    static String uid() {
        return "sums";
    }
    static final class Keep extends Counted<Integer> {
        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT));
        }

        @Override
        Integer of(long number) {
            int unused = 1; // old
            String unused = "x" + number; // new
            return (int) number;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid(uid());
    }
}

final class DeclaredUidConstantRetyped extends Job {
    interface Uids {
        String SUMS = "sums";
    }
    static final class Keep extends Counted<Integer> { // old
    static final class Keep extends Counted<Long> { // new
        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT)); // old
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.LONG)); // new
        }

        @Override
        Integer of(long number) { // old
        Long of(long number) { // new
            return (int) number; // old
            return number; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid(Uids.SUMS);
    }
}

final class DeclaredUidEnumRetyped extends Job {
    enum Uids {
        SUMS;

        String uid() {
            return name().toLowerCase();
        }
    }
    static final class Keep extends Counted<Integer> { // old
    static final class Keep extends Counted<Long> { // new
        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT)); // old
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.LONG)); // new
        }

        @Override
        Integer of(long number) { // old
        Long of(long number) { // new
            return (int) number; // old
            return number; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid(Uids.SUMS.uid());
    }
}

final class DeclaredUidEnumEdited extends Job {
    enum Uids {
        SUMS;

        String uid() {
            return name().toLowerCase();
        }
    }
    static final class Keep extends Counted<Integer> {
        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT));
        }

        @Override
        Integer of(long number) {
            int unused = 1; // old
            String unused = "x" + number; // new
            return (int) number;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid(Uids.SUMS.uid());
    }
}

final class DeclaredKeyReferenceRetyped extends Job {
    static String key(String line) {
        return line.split(",")[0];
    }
    static final class Keep extends Counted<Integer> { // old
    static final class Keep extends Counted<Long> { // new
        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT)); // old
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.LONG)); // new
        }

        @Override
        Integer of(long number) { // old
        Long of(long number) { // new
            return (int) number; // old
            return number; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return lines.keyBy(DeclaredKeyReferenceRetyped::key).flatMap(new Keep()).uid("sums");
    }
}

final class DeclaredKeyClassRetyped extends Job {
    static final class ByName implements KeySelector<String, Integer> { // old
    static final class ByName implements KeySelector<String, Long> { // new
        @Override
        public Integer getKey(String line) { // old
        public Long getKey(String line) { // new
            long number = line.split(",")[0].charAt(0);
            return (int) number; // old
            return number; // new
        }
    }
    static final class Keep extends Counted<Integer> {
        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT));
        }

        @Override
        Integer of(long number) {
            return (int) number;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return lines.keyBy(new ByName()).flatMap(new Keep()).uid("sums");
    }
}

final class DeclaredMapOfListsRetyped extends Job {
    static final class Keep extends RichFlatMapFunction<String, String> {
        private transient MapState<String, List<Integer>> all; // old
        private transient MapState<String, List<Long>> all; // new

        @Override
        public void open(OpenContext context) throws Exception {
            all = getRuntimeContext().getMapState(new MapStateDescriptor<>("all", Types.STRING, Types.LIST(Types.INT))); // old
            all = getRuntimeContext().getMapState(new MapStateDescriptor<>("all", Types.STRING, Types.LIST(Types.LONG))); // new
        }

        @Override
        public void flatMap(String line, Collector<String> out) throws Exception {
            long number = Job.number(line);
            List<Integer> last = all.contains("x") ? all.get("x") : new ArrayList<>(); // old
            List<Long> last = all.contains("x") ? all.get("x") : new ArrayList<>(); // new
            last.add((int) number); // old
            last.add(number); // new
            all.put("x", last);
            out.collect(line.split(",")[0] + "=" + last);
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class DeclaredInnerRetyped extends Job {
    final class Inner extends Counted<Integer> { // old
    final class Inner extends Counted<Long> { // new
        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT)); // old
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.LONG)); // new
        }

        @Override
        Integer of(long number) { // old
        Long of(long number) { // new
            return (int) number; // old
            return number; // new
        }
    }
    static final class Keep extends RichFlatMapFunction<String, String> {
        private final Outer outer = new Outer();

        @Override
        public void open(OpenContext context) throws Exception {
            outer.open(getRuntimeContext());
        }

        @Override
        public void flatMap(String line, Collector<String> out) throws Exception {
            out.collect(line.split(",")[0] + "=" + outer.add(Job.number(line)));
        }
    }
    static final class Outer implements java.io.Serializable {
        transient Part part;

        void open(RuntimeContext context) {
            part = new Part();
            part.sum = context.getState(new ValueStateDescriptor<>("sum", Types.INT)); // old
            part.sum = context.getState(new ValueStateDescriptor<>("sum", Types.LONG)); // new
        }

        Object add(long number) throws Exception {
            number += part.sum.value() == null ? 0 : part.sum.value().longValue();
            part.sum.update((int) number); // old
            part.sum.update(number); // new
            return part.sum.value();
        }

        final class Part {
            ValueState<Integer> sum; // old
            ValueState<Long> sum; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class DeclaredAnonymousRetyped extends Job {
    static RichFlatMapFunction<String, String> keep() {
        return new Counted<Integer>() { // old
        return new Counted<Long>() { // new
            @Override
            public void open(OpenContext context) throws Exception {
                sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT)); // old
                sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.LONG)); // new
            }

            @Override
            Integer of(long number) { // old
            Long of(long number) { // new
                return (int) number; // old
                return number; // new
            }
        };
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(keep()).uid("sums");
    }
}

final class DeclaredSharedRetyped extends Job {
    static final class States {
        static final ValueStateDescriptor<Integer> SUM = new ValueStateDescriptor<>("sum", Types.INT); // old
        static final ValueStateDescriptor<Long> SUM = new ValueStateDescriptor<>("sum", Types.LONG); // new
    }
    static final class Keep extends Counted<Integer> { // old
    static final class Keep extends Counted<Long> { // new
        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(States.SUM);
        }

        @Override
        Integer of(long number) { // old
        Long of(long number) { // new
            return (int) number; // old
            return number; // new
        }
    }
    static final class Other extends Counted<Integer> { // old
    static final class Other extends Counted<Long> { // new
        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(States.SUM);
        }

        @Override
        Integer of(long number) { // old
        Long of(long number) { // new
            return (int) number; // old
            return number; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums").keyBy(line -> line.split("=")[0]).map(line -> line.replace('=', ',')).keyBy(line -> line.split("=")[0]).flatMap(new Other()).uid("others");
    }
}
