package org.apache.flink.api.common;

/** Methods of Flink's class that a job calls. */
public class ExecutionConfig {
    public void registerTypeWithKryoSerializer(Class<?> type, Class<?> serializer) {}

    public void addDefaultKryoSerializer(Class<?> type, Object serializer) {}
}
