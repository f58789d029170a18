package jobs;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichFlatMapFunction;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.StateTtlConfig;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.util.Collector;

/** Adds to a sum of a type that it gets; the jobs below choose it by a condition, and both versions name the same types. */
@SuppressWarnings({"unchecked", "rawtypes"})
class Chosen extends RichFlatMapFunction<String, String> {
    private final TypeInformation<?> type;
    transient ValueState<Object> sum;

    Chosen(TypeInformation<?> type) {
        this.type = type;
    }

    @Override
    public void open(OpenContext context) throws Exception {
        sum = getRuntimeContext().getState(new ValueStateDescriptor("sum", type));
    }

    @Override
    public void flatMap(String line, Collector<String> out) throws Exception {
        add(line, out, type.equals(Types.LONG));
    }

    final void add(String line, Collector<String> out, boolean isLong) throws Exception {
        long number = Job.number(line) + (sum.value() == null ? 0 : ((Number) sum.value()).longValue());
        sum.update(isLong ? (Object) number : (Object) (int) number);
        out.collect(line.split(",")[0] + "=" + sum.value());
    }
}

/** Declares the state itself. */
abstract class ChosenInOpen extends Chosen {
    ChosenInOpen() {
        super(Types.STRING);
    }

    abstract boolean isLong();

    @Override
    public void flatMap(String line, Collector<String> out) throws Exception {
        add(line, out, isLong());
    }
}

/** Conditions in a class of their own. */
final class ChosenBy {
    static final boolean WIDE = Boolean.parseBoolean("false"); // old
    static final boolean WIDE = Boolean.parseBoolean("true"); // new

    private ChosenBy() {}

    static boolean wide() {
        return false; // old
        return true; // new
    }

    static int version() {
        return 1; // old
        return 2; // new
    }

    static String kind() {
        return String.valueOf("int"); // old
        return String.valueOf("long"); // new
    }

    static TypeInformation<?> type(boolean wide) {
        return wide ? Types.LONG : Types.INT;
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenLocal extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        TypeInformation<?> type = ChosenBy.wide() ? Types.LONG : Types.INT;
        return keyed(lines).flatMap(new Chosen(type)).uid("sums");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenIf extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        TypeInformation<?> type = Types.INT;
        if (ChosenBy.WIDE) {
            type = Types.LONG;
        }
        return keyed(lines).flatMap(new Chosen(type)).uid("sums");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenSwitch extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        TypeInformation<?> type;
        switch (ChosenBy.version()) {
            case 1:
                type = Types.INT;
                break;
            default:
                type = Types.LONG;
        }
        return keyed(lines).flatMap(new Chosen(type)).uid("sums");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenSwitchedText extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        TypeInformation<?> type;
        switch (ChosenBy.kind()) {
            case "int":
                type = Types.INT;
                break;
            default:
                type = Types.LONG;
        }
        return keyed(lines).flatMap(new Chosen(type)).uid("sums");
    }
}

/** Only the operands of a switch differ. */
@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenCase extends Job {
    static int version() {
        return Integer.parseInt("3");
    }

    public DataStream<?> build(DataStream<String> lines) {
        TypeInformation<?> type;
        switch (version()) {
            case 3: // old
            case 4: // new
                type = Types.INT;
                break;
            default:
                type = Types.LONG;
        }
        return keyed(lines).flatMap(new Chosen(type)).uid("sums");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenLoop extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        TypeInformation<?> type = Types.LONG;
        for (int n = 0; n < ChosenBy.version(); n++) {
            type = type == Types.INT ? Types.LONG : Types.INT;
        }
        return keyed(lines).flatMap(new Chosen(type)).uid("sums");
    }
}

/** Only the operand of an increment differs. */
@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenStep extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        TypeInformation<?> type = Types.INT;
        for (int n = 1; n < 4; n += 3) { // old
        for (int n = 1; n < 4; n += 2) { // new
            type = n == 3 ? Types.LONG : Types.INT;
        }
        return keyed(lines).flatMap(new Chosen(type)).uid("sums");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenMap extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        Map<String, TypeInformation<?>> types = new HashMap<>();
        types.put("int", Types.INT);
        types.put("long", Types.LONG);
        return keyed(lines).flatMap(new Chosen(types.get(ChosenBy.kind()))).uid("sums");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenMapOf extends Job {
    static final Map<String, TypeInformation<?>> TYPES = Map.of("int", Types.INT, "long", Types.LONG);

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Chosen(TYPES.get(ChosenBy.kind()))).uid("sums");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenArray extends Job {
    static final TypeInformation<?>[] TYPES = {Types.INT, Types.LONG};

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Chosen(TYPES[ChosenBy.version() - 1])).uid("sums");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenList extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        List<TypeInformation<?>> types = new ArrayList<>(List.of(Types.INT, Types.LONG));
        if (ChosenBy.wide()) {
            java.util.Collections.reverse(types);
        }
        return keyed(lines).flatMap(new Chosen(types.get(0))).uid("sums");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenHelper extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Chosen(ChosenBy.type(false))).uid("sums"); // old
        return keyed(lines).flatMap(new Chosen(ChosenBy.type(true))).uid("sums"); // new
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenFlagThrough extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Chosen(ChosenBy.type(ChosenBy.version() > 1))).uid("sums");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenEnum extends Job {
    enum Size {
        NARROW(Types.INT),
        WIDE(Types.LONG);

        final TypeInformation<?> type;

        Size(TypeInformation<?> type) {
            this.type = type;
        }

        static Size of(boolean wide) {
            return valueOf(wide ? "WIDE" : "NARROW");
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Chosen(Size.of(ChosenBy.wide()).type)).uid("sums");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenEnumOrder extends Job {
    enum Size {
        NARROW(Types.INT), // old
        WIDE(Types.LONG), // old
        WIDE(Types.LONG), // new
        NARROW(Types.INT), // new
        ;

        final TypeInformation<?> type;

        Size(TypeInformation<?> type) {
            this.type = type;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Chosen(Size.values()[0].type)).uid("sums");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenProperty extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Chosen(ChosenBy.type("wide".equals(System.getProperty("chosen.kind", "narrow"))))).uid("sums"); // old
        return keyed(lines).flatMap(new Chosen(ChosenBy.type("wide".equals(System.getProperty("chosen.kind", "wide"))))).uid("sums"); // new
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenEnvironment extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Chosen(ChosenBy.type(System.getenv("CHOSEN_KIND") != null))).uid("sums"); // old
        return keyed(lines).flatMap(new Chosen(ChosenBy.type(System.getenv("CHOSEN_KIND") == null))).uid("sums"); // new
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenFactory extends Job {
    static RichFlatMapFunction<String, String> function(boolean wide) {
        return wide ? new Chosen(Types.LONG) : new Chosen(Types.INT);
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(function(ChosenBy.wide())).uid("sums");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenSubclass extends Job {
    interface Provider {
        default TypeInformation<?> type() {
            return Types.INT;
        }
    }

    static final class Narrow implements Provider {}

    static final class Wide implements Provider {
        @Override
        public TypeInformation<?> type() {
            return Types.LONG;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        Provider provider = ChosenBy.wide() ? new Wide() : new Narrow();
        return keyed(lines).flatMap(new Chosen(provider.type())).uid("sums");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenOverride extends Job {
    static class Parent {
        TypeInformation<?> type() {
            return wide() ? Types.LONG : Types.INT;
        }

        boolean wide() {
            return false;
        }
    }

    static final class Child extends Parent {
        @Override // new
        boolean wide() { // new
            return Boolean.parseBoolean("true"); // new
        } // new
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Chosen(new Child().type())).uid("sums");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenReflection extends Job {
    static final String NAME = String.valueOf("Narrow"); // old
    static final String NAME = String.valueOf("Wide"); // new

    public static final class Narrow implements Supplier<TypeInformation<?>> {
        public Narrow() {}

        @Override
        public TypeInformation<?> get() {
            return Types.INT;
        }
    }

    public static final class Wide implements Supplier<TypeInformation<?>> {
        public Wide() {}

        @Override
        public TypeInformation<?> get() {
            return Types.LONG;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        Supplier<TypeInformation<?>> made;
        try {
            made = (Supplier<TypeInformation<?>>) Class.forName("jobs.ChosenReflection$" + NAME).getDeclaredConstructor().newInstance();
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
        return keyed(lines).flatMap(new Chosen(made.get())).uid("sums");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenLambdas extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        Supplier<TypeInformation<?>> narrow = () -> Types.INT; // old
        Supplier<TypeInformation<?>> wide = () -> Types.LONG;
        Supplier<TypeInformation<?>> narrow = () -> Types.INT; // new
        Supplier<TypeInformation<?>> made = Boolean.parseBoolean("true") ? narrow : wide; // old
        Supplier<TypeInformation<?>> made = Boolean.parseBoolean("true") ? wide : narrow; // new
        return keyed(lines).flatMap(new Chosen(made.get())).uid("sums");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenOptional extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Chosen(Optional.of(ChosenBy.wide()).filter(wide -> wide).map(wide -> (TypeInformation) Types.LONG).orElse(Types.INT))).uid("sums");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenCaught extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        TypeInformation<?> type;
        try {
            Integer.parseInt(ChosenBy.wide() ? "x" : "1");
            type = Types.INT;
        } catch (NumberFormatException e) {
            type = Types.LONG;
        }
        return keyed(lines).flatMap(new Chosen(type)).uid("sums");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenSetTwice extends Job {
    static final class Builder {
        TypeInformation<?> type;

        Builder type(TypeInformation<?> type) {
            this.type = type;
            return this;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        Builder builder = new Builder().type(Types.INT);
        if (ChosenBy.wide()) {
            builder.type(Types.LONG);
        }
        return keyed(lines).flatMap(new Chosen(builder.type)).uid("sums");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenStatic extends Job {
    static boolean wide;

    public DataStream<?> build(DataStream<String> lines) {
        wide = ChosenBy.wide();
        return keyed(lines).flatMap(new Chosen(ChosenBy.type(wide))).uid("sums");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenDescriptor extends Job {
    static final class Keep extends ChosenInOpen {
        @Override
        boolean isLong() {
            return ChosenBy.wide();
        }

        @Override
        public void open(OpenContext context) throws Exception {
            if (ChosenBy.wide()) {
                sum = getRuntimeContext().getState(new ValueStateDescriptor("sum", Types.LONG));
            } else {
                sum = getRuntimeContext().getState(new ValueStateDescriptor("sum", Types.INT));
            }
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenArgument extends Job {
    static final class Keep extends ChosenInOpen {
        @Override
        boolean isLong() {
            return ChosenBy.WIDE;
        }

        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor("sum", ChosenBy.WIDE ? Types.LONG : Types.INT));
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenClass extends Job {
    static final class Keep extends ChosenInOpen {
        @Override
        boolean isLong() {
            return ChosenBy.wide();
        }

        @Override
        public void open(OpenContext context) throws Exception {
            Class<?> type = ChosenBy.wide() ? Long.class : Integer.class;
            sum = getRuntimeContext().getState(new ValueStateDescriptor("sum", type));
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenTtl extends Job {
    static final class Keep extends ChosenInOpen {
        @Override
        boolean isLong() {
            return false;
        }

        @Override
        public void open(OpenContext context) throws Exception {
            ValueStateDescriptor descriptor = new ValueStateDescriptor("sum", Types.INT);
            if (ChosenBy.wide()) {
                descriptor.enableTimeToLive(StateTtlConfig.newBuilder(Duration.ofDays(1)).build());
            }
            sum = getRuntimeContext().getState(descriptor);
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenName extends Job {
    static final class Keep extends ChosenInOpen {
        @Override
        boolean isLong() {
            return false;
        }

        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor(ChosenBy.wide() ? "total" : "sum", Types.INT));
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenEarly extends Job {
    static final class Keep extends ChosenInOpen {
        @Override
        boolean isLong() {
            return ChosenBy.wide();
        }

        @Override
        public void open(OpenContext context) throws Exception {
            if (ChosenBy.wide()) {
                sum = getRuntimeContext().getState(new ValueStateDescriptor("sum", Types.LONG));
                return;
            }
            sum = getRuntimeContext().getState(new ValueStateDescriptor("sum", Types.INT));
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenUnion extends Job {
    static final class Keep extends RichFlatMapFunction<String, String> implements CheckpointedFunction {
        private transient ListState<Integer> all;

        @Override
        public void initializeState(FunctionInitializationContext context) throws Exception {
            ListStateDescriptor<Integer> descriptor = new ListStateDescriptor<>("all", Types.INT);
            all = ChosenBy.wide() ? context.getOperatorStateStore().getUnionListState(descriptor) : context.getOperatorStateStore().getListState(descriptor);
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) {}

        @Override
        public void flatMap(String line, Collector<String> out) throws Exception {
            all.add(Job.number(line));
            int sum = 0;
            for (int one : all.get()) {
                sum += one;
            }
            out.collect(line.split(",")[0] + "=" + sum);
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return lines.flatMap(new Keep()).uid("sums");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenReturns extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return ((DataStream) lines.map(line -> ChosenBy.wide() ? (Object) Tuple2.of(line.split(",")[0], (long) number(line)) : (Object) Tuple2.of(line.split(",")[0], number(line)))
                .returns((TypeInformation) (ChosenBy.wide() ? Types.TUPLE(Types.STRING, Types.LONG) : Types.TUPLE(Types.STRING, Types.INT))))
                .keyBy(one -> ((Tuple2) one).f0, (TypeInformation) Types.STRING)
                .sum(1).uid("sums");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenContents extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return ((DataStream) lines.map(line -> ChosenBy.wide() ? (Object) Tuple2.of(line.split(",")[0], (long) number(line)) : (Object) Tuple2.of(line.split(",")[0], number(line)))
                .returns((TypeInformation) (ChosenBy.wide() ? Types.TUPLE(Types.STRING, Types.LONG) : Types.TUPLE(Types.STRING, Types.INT))))
                .keyBy(one -> ((Tuple2) one).f0, (TypeInformation) Types.STRING)
                .window(TumblingEventTimeWindows.of(Duration.ofSeconds(10))).reduce(new Last()).uid("windows");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenKey extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        TypeInformation type = ChosenBy.wide() ? Types.LONG : Types.INT;
        return ((DataStream) lines).keyBy(line -> ChosenBy.wide() ? (Object) (long) ((String) line).charAt(0) : (Object) (int) ((String) line).charAt(0), type).flatMap(new Chosen(Types.INT)).uid("sums");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenUid extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Chosen(Types.INT)).uid(ChosenBy.wide() ? "totals" : "sums");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenMaxParallelism extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Chosen(Types.INT)).uid("sums").setMaxParallelism(ChosenBy.wide() ? 64 : 128);
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenOperator extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return ChosenBy.wide() ? keyed(lines).flatMap(new Chosen(Types.LONG)).uid("sums") : keyed(lines).flatMap(new Chosen(Types.INT)).uid("sums");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenLocalEdited extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        int unused = 1; // old
        String unused = "x" + lines; // new
        TypeInformation<?> type = "x".isEmpty() ? Types.LONG : Types.INT;
        return keyed(lines).flatMap(new Chosen(type)).uid("sums");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenDescriptorEdited extends Job {
    static final class Keep extends ChosenInOpen {
        @Override
        boolean isLong() {
            return false;
        }

        @Override
        public void open(OpenContext context) throws Exception {
            int unused = 1; // old
            String unused = "x" + context; // new
            if (isLong()) {
                sum = getRuntimeContext().getState(new ValueStateDescriptor("sum", Types.LONG));
            } else {
                sum = getRuntimeContext().getState(new ValueStateDescriptor("sum", Types.INT));
            }
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenReturnsEdited extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        int unused = 1; // old
        String unused = "x" + lines; // new
        return ((DataStream) lines.map(line -> "x".isEmpty() ? (Object) Tuple2.of(line.split(",")[0], (long) number(line)) : (Object) Tuple2.of(line.split(",")[0], number(line)))
                .returns((TypeInformation) ("x".isEmpty() ? Types.TUPLE(Types.STRING, Types.LONG) : Types.TUPLE(Types.STRING, Types.INT))))
                .keyBy(one -> ((Tuple2) one).f0, (TypeInformation) Types.STRING)
                .sum(1).uid("sums");
    }
}

/** The environment chooses the type, and other code changes. */
@SuppressWarnings({"unchecked", "rawtypes"})
final class ChosenEnvironmentKept extends Job {
    static final class Shown implements org.apache.flink.api.common.functions.MapFunction<String, String> {
        @Override
        public String map(String line) {
            return line; // old
            return String.join("", line); // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Chosen(System.getenv("CHOSEN_KIND") != null ? Types.LONG : Types.INT)).uid("sums")
                .map(new Shown());
    }
}
