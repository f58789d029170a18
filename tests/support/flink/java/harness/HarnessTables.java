package harness;

import java.util.Collections;
import java.util.Optional;
import java.util.Set;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.factories.DynamicTableFactory;
import org.apache.flink.table.factories.DynamicTableSinkFactory;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.module.Module;
import org.apache.flink.table.types.DataType;

/** The connector {@code harness}, whose sources and sinks a job makes itself. */
abstract class HarnessTables implements Module {
    abstract DynamicTableSource source(String name, DataType type);

    abstract DynamicTableSink sink(DataType type);

    @Override
    public Optional<DynamicTableSourceFactory> getTableSourceFactory() {
        return Optional.of(new Sources());
    }

    @Override
    public Optional<DynamicTableSinkFactory> getTableSinkFactory() {
        return Optional.of(new Sinks());
    }

    private abstract static class Factory {
        public String factoryIdentifier() {
            return "harness";
        }

        public Set<ConfigOption<?>> requiredOptions() {
            return Collections.emptySet();
        }

        public Set<ConfigOption<?>> optionalOptions() {
            return Collections.emptySet();
        }

        static DataType type(DynamicTableFactory.Context context) {
            return context.getCatalogTable().getResolvedSchema().toPhysicalRowDataType();
        }
    }

    private final class Sources extends Factory implements DynamicTableSourceFactory {
        @Override
        public DynamicTableSource createDynamicTableSource(Context context) {
            return source(context.getObjectIdentifier().getObjectName(), type(context));
        }
    }

    private final class Sinks extends Factory implements DynamicTableSinkFactory {
        @Override
        public DynamicTableSink createDynamicTableSink(Context context) {
            return sink(type(context));
        }
    }
}
