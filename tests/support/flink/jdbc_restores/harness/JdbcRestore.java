package harness;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedList;
import org.apache.flink.connector.jdbc.JdbcExactlyOnceOptions;
import org.apache.flink.connector.jdbc.core.datastream.sink.writer.JdbcWriterState;
import org.apache.flink.connector.jdbc.datasource.connections.xa.PoolingXaConnectionProvider;
import org.apache.flink.connector.jdbc.datasource.connections.xa.SimpleXaConnectionProvider;
import org.apache.flink.connector.jdbc.datasource.connections.xa.XaConnectionProvider;
import org.apache.flink.connector.jdbc.datasource.transactions.xa.XaTransaction;
import org.apache.flink.connector.jdbc.datasource.transactions.xa.domain.TransactionId;
import org.postgresql.xa.PGXADataSource;

/**
 * What a restored writer of JDBC's sink does when it opens: by the connector's own classes, with the same job id and subtask as before. It
 * has prepared transactions of checkpoints 6 and 7, and the open one of checkpoint 8.
 */
public final class JdbcRestore {
    private JdbcRestore() {}

    /** Arguments: URL, password, and whether each transaction has its own connection. */
    public static void main(String[] arguments) throws Exception {
        byte[] job = new byte[16];
        for (int i = 0; i < job.length; i++) {
            job[i] = (byte) i;
        }
        boolean isPooled = Boolean.parseBoolean(arguments[2]);
        PGXADataSource source = new PGXADataSource();
        source.setUrl(arguments[0]);
        source.setPassword(arguments[1]);
        XaConnectionProvider connections = isPooled
                ? PoolingXaConnectionProvider.from(() -> source, null) : SimpleXaConnectionProvider.from(source);
        JdbcExactlyOnceOptions options = JdbcExactlyOnceOptions.builder()
                .withRecoveredAndRollback(true).withTransactionPerConnection(isPooled).build();
        new XaTransaction(options, TransactionId.create(job, 0, 2), connections).open(JdbcWriterState.of(
                new ArrayList<>(Arrays.asList(
                        TransactionId.restore(job, 0, 2, 6, 0), TransactionId.restore(job, 0, 2, 7, 0))),
                new LinkedList<>(Collections.singletonList(TransactionId.restore(job, 0, 2, 8, 0)))));
    }
}
