package harness;

import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;

/** The sink of Paimon, with a table in a local warehouse. */
final class PaimonSinks {
    private PaimonSinks() {}

    /** A row of a number. */
    static final class ToRow implements MapFunction<Long, Row> {
        @Override
        public Row map(Long n) {
            return Row.of(n);
        }
    }

    static void add(DataStream<Long> numbers, String folder) {
        StreamTableEnvironment tables = StreamTableEnvironment.create(numbers.getExecutionEnvironment());
        tables.executeSql("CREATE CATALOG lake WITH ('type'='paimon', 'warehouse'='file://" + folder + "')");
        tables.executeSql("CREATE DATABASE IF NOT EXISTS lake.shop");
        tables.executeSql("CREATE TABLE IF NOT EXISTS lake.shop.numbers (n BIGINT) WITH ('bucket'='2', 'bucket-key'='n')");
        tables.createTemporaryView("numbers_in", numbers.map(new ToRow())
                .returns(Types.ROW_NAMED(new String[] {"n"}, Types.LONG)).uid("rows"));
        tables.createStatementSet().addInsertSql("INSERT INTO lake.shop.numbers SELECT n FROM numbers_in").attachAsDataStream();
    }
}
