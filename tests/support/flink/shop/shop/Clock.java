package shop;

import java.io.IOException;
import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.runtime.state.AbstractKeyedStateBackend;
import org.apache.flink.runtime.state.KeyedStateBackendParametersImpl;
import org.apache.flink.runtime.state.StateBackendFactory;
import org.apache.flink.state.rocksdb.EmbeddedRocksDBStateBackend;

/** Flink's RocksDB backend with a clock for times to live that shows the time of the event: the job writes the same state on any day. */
public final class Clock implements StateBackendFactory<EmbeddedRocksDBStateBackend> {
    private static final ThreadLocal<Long> NOW = ThreadLocal.withInitial(() -> 0L);

    static void set(long timestamp) {
        NOW.set(timestamp);
    }

    @Override
    public EmbeddedRocksDBStateBackend createFromConfig(ReadableConfig config, ClassLoader loader) {
        return new Backend(new EmbeddedRocksDBStateBackend(), config, loader);
    }

    private static final class Backend extends EmbeddedRocksDBStateBackend {
        Backend(EmbeddedRocksDBStateBackend original, ReadableConfig config, ClassLoader loader) {
            super(original, config, loader);
        }

        @Override
        public EmbeddedRocksDBStateBackend configure(ReadableConfig config, ClassLoader loader) {
            return new Backend(this, config, loader);
        }

        @Override
        public <K> AbstractKeyedStateBackend<K> createKeyedStateBackend(KeyedStateBackendParameters<K> parameters)
                throws IOException {
            return super.createKeyedStateBackend(
                    new KeyedStateBackendParametersImpl<>(parameters).setTtlTimeProvider(NOW::get));
        }
    }
}
