package io.delta.flink.source.internal;

/** Stands for the options of Delta's source, which the sink only imports for its documentation. */
public final class DeltaSourceOptions {
    private DeltaSourceOptions() {}
}
