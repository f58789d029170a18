package harness;

import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Optional;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.dag.Transformation;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.RuntimeConverter;
import org.apache.flink.table.connector.sink.DataStreamSinkProvider;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.source.DataStreamScanProvider;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.ScanTableSource;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.types.DataType;
import org.apache.flink.types.Row;

/** Tables of jobs with a compiled plan: sources that send what is queued, and sinks that keep all rows. */
final class PlannedTables extends HarnessTables {
    private final String run;

    PlannedTables(String run) {
        this.run = run;
    }

    @Override
    DynamicTableSource source(String name, DataType type) {
        return new Source(name, type);
    }

    @Override
    DynamicTableSink sink(DataType type) {
        return new Sink(type);
    }

    private final class Source implements ScanTableSource {
        private final String name;
        private final DataType type;

        Source(String name, DataType type) {
            this.name = name;
            this.type = type;
        }

        @Override
        public ChangelogMode getChangelogMode() {
            return ChangelogMode.insertOnly();
        }

        @Override
        public ScanRuntimeProvider getScanRuntimeProvider(ScanContext context) {
            ToData converter = new ToData(context.createDataStructureConverter(type));
            TypeInformation<RowData> data = context.createTypeInformation(type);
            return provider(DataStreamScanProvider.class, "produceDataStream", env ->
                    SqlJob.feed((StreamExecutionEnvironment) env, run, name)
                            .map(converter).returns(data).setParallelism(1).uid("data-" + name));
        }

        @Override
        public DynamicTableSource copy() {
            return new Source(name, type);
        }

        @Override
        public String asSummaryString() {
            return "harness";
        }
    }

    private final class Sink implements DynamicTableSink {
        private final DataType type;

        Sink(DataType type) {
            this.type = type;
        }

        @Override
        public ChangelogMode getChangelogMode(ChangelogMode requested) {
            return ChangelogMode.all();
        }

        @Override
        @SuppressWarnings("unchecked")
        public SinkRuntimeProvider getSinkRuntimeProvider(Context context) {
            FromData converter = new FromData(context.createDataStructureConverter(type));
            SqlJob.Keep keep = new SqlJob.Keep(run);
            return provider(DataStreamSinkProvider.class, "consumeDataStream", rows ->
                    Cluster.discard(((DataStream<RowData>) rows)
                            .map((MapFunction<RowData, Long>) data -> keep.map(converter.map(data)))
                            .returns(Long.class).uid("kept")));
        }

        @Override
        public DynamicTableSink copy() {
            return new Sink(type);
        }

        @Override
        public String asSummaryString() {
            return "harness";
        }
    }

    private interface Make {
        Object of(Object last) throws Exception;
    }

    /** The method of a provider has other parameters in some releases; the last is always the stream or the environment. */
    private static <T> T provider(Class<T> type, String method, Make make) {
        return type.cast(Proxy.newProxyInstance(PlannedTables.class.getClassLoader(), new Class<?>[] {type}, (p, m, a) -> {
            switch (m.getName()) {
                case "isBounded":
                    return false;
                case "getParallelism":
                    return Optional.empty();
                default:
                    if (!m.getName().equals(method)) {
                        throw new UnsupportedOperationException(m.toString());
                    }
                    return make.of(a[a.length - 1]);
            }
        }));
    }

    private static final class ToData implements MapFunction<Row, RowData> {
        private final DynamicTableSource.DataStructureConverter converter;
        private transient boolean open;

        ToData(DynamicTableSource.DataStructureConverter converter) {
            this.converter = converter;
        }

        @Override
        public RowData map(Row row) {
            if (!open) {
                converter.open(RuntimeConverter.Context.create(PlannedTables.class.getClassLoader()));
                open = true;
            }
            return (RowData) converter.toInternal(row);
        }
    }

    private static final class FromData implements MapFunction<RowData, Row> {
        private final DynamicTableSink.DataStructureConverter converter;
        private transient boolean open;

        FromData(DynamicTableSink.DataStructureConverter converter) {
            this.converter = converter;
        }

        @Override
        public Row map(RowData data) {
            if (!open) {
                converter.open(RuntimeConverter.Context.create(PlannedTables.class.getClassLoader()));
                open = true;
            }
            return (Row) converter.toExternal(data);
        }
    }

    /** Add the operators of a query to the job, from its compiled plan as EXECUTE PLAN does. A sink keeps its rows. Returns the plan. */
    static String plan(StreamTableEnvironment tables, StreamExecutionEnvironment env, String query) throws Exception {
        List<DataType> types = tables.sqlQuery(query).getResolvedSchema().getColumnDataTypes();
        List<String> names = tables.sqlQuery(query).getResolvedSchema().getColumnNames();
        StringBuilder columns = new StringBuilder();
        for (int i = 0; i < names.size(); i++) {
            columns.append(i == 0 ? "`" : ", `").append(names.get(i)).append("` ")
                    .append(types.get(i).getLogicalType().asSerializableString());
        }
        tables.executeSql("CREATE TEMPORARY TABLE result_rows (" + columns + ") WITH ('connector' = 'harness')");
        return compile(tables, env, "INSERT INTO result_rows " + query);
    }

    /** Compile the plan of an INSERT, and add its operators to the job. Returns the plan. */
    static String compile(StreamTableEnvironment tables, StreamExecutionEnvironment env, String insert) throws Exception {
        Object planner = Reflect.call(tables, "getPlanner");
        // A session counts the nodes of all its plans; this one is the first, so that equal queries have equal uids.
        planner.getClass().getClassLoader().loadClass("org.apache.flink.table.planner.plan.nodes.exec.ExecNodeContext")
                .getMethod("resetIdCounter").invoke(null);
        Object compiled = Reflect.call(tables, "compilePlanSql", insert);
        String text = (String) Reflect.call(compiled, "asJsonString");
        Object reference = Class.forName("org.apache.flink.table.api.PlanReference")
                .getMethod("fromJsonString", String.class).invoke(null, text);
        Object loaded = Reflect.call(planner, "loadPlan", reference);
        for (Object operator : (List<?>) Reflect.call(planner, "translatePlan", loaded)) {
            env.addOperator((Transformation<?>) operator);
        }
        return text;
    }
}
