package org.apache.flink.connector.dynamodb.source.enumerator;

/** Only comments of the compiled classes name it. */
public final class DynamoDbStreamsSourceEnumerator {}
