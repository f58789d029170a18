"""The job of the Table API: aggregates in Python with and without views, in groups and windows, and those of pandas."""

from cases import KEPT_NUMBERS
from number_source import create_number_table
from pyflink.common import Row
from pyflink.table import DataTypes, ListView, MapView, StreamTableEnvironment
from pyflink.table.udf import AggregateFunction, udaf


class ViewAggregate(AggregateFunction):
    """Aggregate that counts values and stores them in views."""

    def create_accumulator(self):
        return Row(0, ListView(), MapView())

    def get_value(self, accumulator):
        return accumulator[0]

    def accumulate(self, accumulator, value):
        accumulator[0] += 1
        accumulator[1].add(f"l{value}")
        accumulator[2].put(f"m{value % 2}", value)

    def retract(self, accumulator, value):
        accumulator[0] -= 1

    def get_accumulator_type(self):
        return DataTypes.ROW(
            [
                DataTypes.FIELD("n", DataTypes.BIGINT()),
                DataTypes.FIELD("l", DataTypes.LIST_VIEW(DataTypes.STRING())),
                DataTypes.FIELD("m", DataTypes.MAP_VIEW(DataTypes.STRING(), DataTypes.BIGINT())),
            ]
        )

    def get_result_type(self):
        return DataTypes.BIGINT()


class SumAggregate(AggregateFunction):
    """Aggregate of sum and count."""

    def create_accumulator(self):
        return Row(0, 0)

    def get_value(self, accumulator):
        return accumulator[0]

    def accumulate(self, accumulator, value):
        accumulator[0] += value
        accumulator[1] += 1

    def retract(self, accumulator, value):
        accumulator[0] -= value
        accumulator[1] -= 1

    def merge(self, accumulator, others):
        for other in others:
            accumulator[0] += other[0]
            accumulator[1] += other[1]

    def get_accumulator_type(self):
        return DataTypes.ROW([DataTypes.FIELD("s", DataTypes.BIGINT()), DataTypes.FIELD("n", DataTypes.BIGINT())])

    def get_result_type(self):
        return DataTypes.BIGINT()


# Not "n < 60": the planner would give the source a bound.
KEPT = f"(SELECT n, MOD(n, 5) AS k, ts, pt FROM numbers WHERE MOD(n, 1000000) < {KEPT_NUMBERS})"
HALF_MINUTES = "TUMBLE(ts, INTERVAL '30' SECOND)"
LAST_TEN_SECONDS = "PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND CURRENT ROW"
#: The columns of a sink, and its query.
QUERIES = (
    ("k BIGINT, v BIGINT, s BIGINT", f"SELECT k, seen_views(n), sums(n) FROM {KEPT} GROUP BY k"),
    ("k BIGINT, s BIGINT", f"SELECT k, sums(n) FROM {KEPT} GROUP BY k, {HALF_MINUTES}"),
    ("k BIGINT, s BIGINT", f"SELECT k, vec(n) FROM {KEPT} GROUP BY k, {HALF_MINUTES}"),
    ("k BIGINT, s BIGINT", f"SELECT k, vec(n) OVER ({LAST_TEN_SECONDS}) FROM {KEPT}"),
)


def submit(env, first_number):
    """Submit the job, and return its client."""
    tables = StreamTableEnvironment.create(env)
    create_number_table(
        tables,
        first_number,
        "ts AS TO_TIMESTAMP_LTZ(n * 1000, 3), pt AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '10' DAY",
    )
    tables.create_temporary_function("seen_views", udaf(ViewAggregate()))
    tables.create_temporary_function("sums", udaf(SumAggregate()))
    tables.create_temporary_function("vec", udaf(lambda v: v.sum(), result_type=DataTypes.BIGINT(), func_type="pandas"))
    statements = tables.create_statement_set()
    for sink, (columns, query) in zip("abcd", QUERIES):
        tables.execute_sql(f"CREATE TEMPORARY TABLE sink_{sink} ({columns}) WITH ('connector' = 'blackhole')")
        statements.add_insert_sql(f"INSERT INTO sink_{sink} {query}")
    return statements.execute().get_job_client()
