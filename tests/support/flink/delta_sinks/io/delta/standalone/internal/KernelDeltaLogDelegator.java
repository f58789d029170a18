package io.delta.standalone.internal;

import io.delta.standalone.DeltaLog;
import org.apache.hadoop.conf.Configuration;

/** Stands for a class in Scala, which the sink uses only if a setting asks for it. */
public final class KernelDeltaLogDelegator {
    private KernelDeltaLogDelegator() {}

    public static DeltaLog forTable(Configuration conf, String path) {
        throw new UnsupportedOperationException("not without Delta's kernel");
    }
}
