package io.delta.flink.internal;

/** Names the versions that a commit mentions. The build of Delta generates a class with these fields. */
public final class Meta {
    public static final String FLINK_VERSION = "1.16.3";
    public static final String CONNECTOR_VERSION = "3.3.2";

    private Meta() {}
}
