# mypy: ignore-errors
"""A PyFlink job that keeps every kind of state and stops with a savepoint; with ``--restore`` it says what it finds.

It needs a Python with ``apache-flink`` (1.17 to 2.3). ``tests/corpus/pyflink.tar.xz`` has one folder for each of::

    python job.py process-2.3.0-hashmap
    python job.py process-2.3.0-rocksdb-native --backend rocksdb --format NATIVE
    python job.py process-1.20.5-rocksdb --backend rocksdb
    python job.py process-1.17.2-hashmap
    python job.py thread-2.3.0-hashmap --mode thread
    python job.py thread-1.17.2-hashmap --mode thread
    python job.py table-2.3.0-rocksdb --job table --backend rocksdb --seconds 45
    python job.py table-1.20.5-rocksdb-native --job table --backend rocksdb --format NATIVE --seconds 45

with the PyFlink of that release: its savepoint, and ``expected.json`` with what the operators have put in, told by
their own rules and not by reading state. Up to 1.17, Java 17 needs the ``--add-opens`` of Flink's scripts in
``JDK_JAVA_OPTIONS``.

PyFlink's own limits: in thread mode it cannot write states of merging and count windows (they are in no namespace and
get one); and on the heap backend a Python GROUP BY changes the keys of entries that are there already, so that its
savepoints hold wrong keys.
"""

import argparse
import datetime
import glob
import json
import os
import time
from decimal import Decimal

from pyflink.common import Configuration, Duration, Row, Time, Types
from pyflink.common.time import Instant
from pyflink.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import (
    AggregateFunction,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    ProcessWindowFunction,
    ReduceFunction,
)
from pyflink.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from pyflink.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from pyflink.java_gateway import get_gateway
from pyflink.table import DataTypes, StreamTableEnvironment
from pyflink.table.udf import AggregateFunction as TableAggregate
from pyflink.table.udf import udaf

ROWS = 60
FAR = 4102444800000  # 2100
DAY = datetime.date(2024, 2, 29)


def plain(value):
    """JSON of a Python value, with what statetool shows for it."""
    if isinstance(value, Row):
        return {"row": [plain(v) for v in value._values], "kind": value.get_row_kind().name}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {"map": [[plain(k), plain(v)] for k, v in value.items()]}
    if isinstance(value, Instant):
        return {"seconds": value.seconds, "nanos": value.nanos}
    if isinstance(value, (bytes, bytearray)):
        return {"hex": bytes(value).hex()}
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    return value


ROW_TYPE = ["id", "name", "tags"]
# State name, PyFlink's type (made late: it needs the gateway), what statetool is told, the value for a number.
VALUES = {
    "string": (lambda: Types.STRING(), "STRING", lambda n: f"é€😀{n}"),
    "boolean": (lambda: Types.BOOLEAN(), "BOOLEAN", lambda n: n % 2 == 0),
    "byte": (lambda: Types.BYTE(), "BYTE", lambda n: n % 256 - 128),
    "short": (lambda: Types.SHORT(), "SHORT", lambda n: -300 - n),
    "int": (lambda: Types.INT(), "INT", lambda n: -(2**31) + n),
    "long": (lambda: Types.LONG(), "LONG", lambda n: 2**63 - 1 - n),
    "float": (lambda: Types.FLOAT(), "FLOAT", lambda n: n + 0.25),
    "double": (lambda: Types.DOUBLE(), "DOUBLE", lambda n: n / 7),
    "char": (lambda: Types.CHAR(), "CHAR", lambda n: chr(65 + n % 26)),
    "bigint": (lambda: Types.BIG_INT(), "BIG_INT", lambda n: -(2**62) + n),
    "bigdec": (
        lambda: Types.BIG_DEC(),
        "BIG_DEC",
        lambda n: Decimal(n) / Decimal("8") - Decimal("12345678901234567890.5"),
    ),
    "date": (lambda: Types.SQL_DATE(), "SQL_DATE", lambda n: DAY - datetime.timedelta(days=n * 1000)),
    "time": (lambda: Types.SQL_TIME(), "SQL_TIME", lambda n: datetime.time(23, n % 60, 59, 123000)),
    "timestamp": (
        lambda: Types.SQL_TIMESTAMP(),
        "SQL_TIMESTAMP",
        lambda n: datetime.datetime(2024, 2, 29, 1, 2, 3, 4000) + datetime.timedelta(days=n),
    ),
    "instant": (lambda: Types.INSTANT(), "INSTANT", lambda n: Instant(1709168523 + n, 123456789)),
    "pickled": (lambda: Types.PICKLED_BYTE_ARRAY(), "PICKLED_BYTE_ARRAY", lambda n: [n, "p", None, 1.5]),
    "bytes": (lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()), "PRIMITIVE_ARRAY(BYTE)", lambda n: bytes([n, 0, 255])),
    "ints": (lambda: Types.PRIMITIVE_ARRAY(Types.INT()), "PRIMITIVE_ARRAY(INT)", lambda n: list(range(n % 4))),
    "doubles": (lambda: Types.PRIMITIVE_ARRAY(Types.DOUBLE()), "PRIMITIVE_ARRAY(DOUBLE)", lambda n: [n / 3, -1.0]),
    "strings": (lambda: Types.BASIC_ARRAY(Types.STRING()), "BASIC_ARRAY(STRING)", lambda n: ["a" * (n % 3), None]),
    "objects": (
        lambda: Types.OBJECT_ARRAY(Types.TUPLE([Types.INT(), Types.STRING()])),
        "OBJECT_ARRAY(TUPLE(INT, STRING))",
        lambda n: [(n, "x")],
    ),
    "row": (
        lambda: Types.ROW([Types.LONG(), Types.STRING()]),
        "ROW(LONG, STRING)",
        lambda n: Row(n, None if n % 2 else "odd"),
    ),
    "named": (
        lambda: Types.ROW_NAMED(ROW_TYPE, [Types.LONG(), Types.STRING(), Types.LIST(Types.STRING())]),
        "ROW(id: LONG, name: STRING, tags: LIST(STRING))",
        lambda n: Row(id=n, name=f"n{n}", tags=["t", None]),
    ),
    "tuple": (
        lambda: Types.TUPLE([Types.LONG(), Types.STRING(), Types.BOOLEAN()]),
        "TUPLE(LONG, STRING, BOOLEAN)",
        lambda n: (n, "t", True),
    ),
    "list_of": (lambda: Types.LIST(Types.LONG()), "LIST(LONG)", lambda n: [n, None, n + 1]),
    "map_of": (lambda: Types.MAP(Types.STRING(), Types.LONG()), "MAP(STRING, LONG)", lambda n: {"k": n, "none": None}),
    "nested": (
        lambda: Types.MAP(Types.STRING(), Types.LIST(Types.ROW([Types.INT(), Types.PICKLED_BYTE_ARRAY()]))),
        "MAP(STRING, LIST(ROW(INT, PICKLED_BYTE_ARRAY)))",
        lambda n: {"k": [Row(n, {"a": n})]},
    ),
}
# Thread mode hands them to Java objects, for which PyFlink 2.3 has no converters.
NOT_IN_THREADS = {
    "char",
    "instant",
    "objects",
    "row",
    "named",
    "tuple",
    "nested",
    "date",
    "time",
    "timestamp",
    "bytes",
    "ints",
    "doubles",
    "strings",
    "list_of",
    "map_of",
    "float",
    "bigint",
    "bigdec",
}


class Add(ReduceFunction):
    def reduce(self, value1, value2):
        return value1 + value2


class Average(AggregateFunction):
    def create_accumulator(self):
        return (0, 0)

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, a, b):
        return a[0] + b[0], a[1] + b[1]


class Probe:
    """Writes what a restored job finds; one file for each subtask."""

    def __init__(self, folder):
        self.folder, self.seen = folder, set()

    def write(self, operator, key, found):
        if repr(key) in self.seen:
            return
        self.seen.add(repr(key))
        with open(os.path.join(self.folder, f"{operator}-{os.getpid()}-{id(self)}"), "a") as f:
            f.write(json.dumps([operator, plain(key), found]) + "\n")


class Everything(KeyedProcessFunction):
    """All types and kinds of state, on first sight of a number; on restored state it reports what is there."""

    def __init__(self, operator, names, folder, threads):
        self.operator, self.names, self.folder, self.threads = operator, names, folder, threads

    def open(self, context):
        self.probe = Probe(self.folder)
        self.values = {n: context.get_state(ValueStateDescriptor(n, VALUES[n][0]())) for n in self.names}
        self.items = context.get_list_state(ListStateDescriptor("items", Types.STRING()))
        self.sizes = context.get_map_state(MapStateDescriptor("sizes", Types.STRING(), Types.LONG()))
        self.total = context.get_reducing_state(ReducingStateDescriptor("total", Add(), Types.LONG()))
        pair = Types.PICKLED_BYTE_ARRAY() if self.threads else Types.TUPLE([Types.LONG(), Types.LONG()])
        self.average = context.get_aggregating_state(AggregatingStateDescriptor("average", Average(), pair))
        ttl = (
            StateTtlConfig.new_builder(Time.days(20000)).build()
            if hasattr(Time, "days")
            else StateTtlConfig.new_builder(Duration.of_days(20000)).build()
        )
        value = ValueStateDescriptor("ttl_value", Types.STRING())
        value.enable_time_to_live(ttl)
        self.ttl_value = context.get_state(value)
        items = ListStateDescriptor("ttl_items", Types.LONG())
        items.enable_time_to_live(ttl)
        self.ttl_items = context.get_list_state(items)
        sizes = MapStateDescriptor("ttl_sizes", Types.LONG(), Types.STRING())
        sizes.enable_time_to_live(ttl)
        self.ttl_sizes = context.get_map_state(sizes)

    def process_element(self, value, ctx):
        n = value[0]
        if n >= ROWS:
            self.probe.write(self.operator, ctx.get_current_key(), self.found())
            return
        for name, state in self.values.items():
            state.update(VALUES[name][2](n))
        self.items.add("a")
        self.items.add_all([f"i{i}" for i in range(n % 3)])
        for i in range(n % 4):
            self.sizes.put(f"m{i}", n * 10 + i)
        self.total.add(n)
        self.total.add(5)
        self.average.add(n)
        self.average.add(2)
        self.ttl_value.update(f"v{n}")
        self.ttl_items.add_all([n, n + 1])
        self.ttl_sizes.put(n, "s")
        ctx.timer_service().register_event_time_timer(FAR + n)
        ctx.timer_service().register_processing_time_timer(FAR + 2 * n)
        if False:
            yield

    def found(self):
        return {
            **{name: plain(state.value()) for name, state in self.values.items()},
            "items": list(self.items.get() or []),
            "sizes": dict(sorted(self.sizes.items())),
            "total": self.total.get(),
            "average": self.average.get(),
            "ttl_value": self.ttl_value.value(),
            "ttl_items": list(self.ttl_items.get() or []),
            "ttl_sizes": sorted([k, v] for k, v in self.ttl_sizes.items()),
        }

    def on_timer(self, timestamp, ctx):
        if False:
            yield


def expected_of(n, names):
    return {
        **{name: plain(VALUES[name][2](n)) for name in names},
        "items": ["a", *(f"i{i}" for i in range(n % 3))],
        "sizes": {f"m{i}": n * 10 + i for i in range(n % 4)},
        "total": n + 5,
        "average": [n + 2, 2],
        "ttl_value": f"v{n}",
        "ttl_items": [n, n + 1],
        "ttl_sizes": [[n, "s"]],
    }


def expected(args):
    """What the operators have put in when all numbers below ROWS went through them; told without any state."""
    if args.job == "table":
        keys = {k: [n for n in range(ROWS) if n % 5 == k] for k in range(5)}
        return {
            "agg0$l": {k: [f"l{n}" for n in some] for k, some in keys.items()},
            "agg0$m": {k: {f"m{n % 2}": n for n in some} for k, some in keys.items()},
            "accumulators": {k: [[len(some), None, None], [sum(some), len(some)]] for k, some in keys.items()},
        }
    thirds = {k: [n for n in range(ROWS) if n % 3 == k] for k in range(3)}
    found = {
        "everything": {n: expected_of(n, args.names) for n in range(ROWS)},
        "types": {name: VALUES[name][1] for name in args.names},
        "tumbling": [[k, 30000 * (n // 30), [n, "x"]] for k, some in thirds.items() for n in some],
        "seen": {k: max(some) for k, some in thirds.items()},
        "rules": {f"r{i}": i for i in range(5)},
        "session": [[k, 1000 * n, [n, "x"]] for k, some in thirds.items() for n in some],
        "merged": {k: sum(some) for k, some in thirds.items()},
        "counted": {k: [len(some), sum(some)] for k, some in thirds.items()},
    }
    for name, (_, key) in KEYS.items():
        sums = {}
        for n in range(ROWS):
            text = json.dumps(plain(key(n)), ensure_ascii=False)
            sums[text] = sums.get(text, 0) + n
        found[f"key-{name}"] = [[json.loads(k), total] for k, total in sums.items()]
    return found


class Count(KeyedProcessFunction):
    """One small state, for keys of many types."""

    def __init__(self, operator, folder):
        self.operator, self.folder = operator, folder

    def open(self, context):
        self.probe = Probe(self.folder)
        self.count = context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        n = value[0]
        if n < ROWS:
            self.count.update((self.count.value() or 0) + n)
        else:
            self.probe.write(self.operator, ctx.get_current_key(), self.count.value())
        if False:
            yield


class Whole(ProcessWindowFunction):
    def process(self, key, context, elements):
        return [0]


class At(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return 1000 * value[0]


class Broadcast(KeyedBroadcastProcessFunction):
    def __init__(self, descriptor):
        self.descriptor = descriptor

    def open(self, context):
        self.seen = context.get_state(ValueStateDescriptor("seen", Types.LONG()))

    def process_element(self, value, ctx):
        if value[0] < ROWS:
            self.seen.update(value[0])
        if False:
            yield

    def process_broadcast_element(self, value, ctx):
        if value[0] < 5:
            ctx.get_broadcast_state(self.descriptor).put(f"r{value[0]}", value[0])
        if False:
            yield


KEYS = {
    "pickled": (lambda: None, lambda n: f"k{n % 7}"),
    "int": (lambda: Types.INT(), lambda n: n % 7 - 3),
    "long": (lambda: Types.LONG(), lambda n: 2**40 + n % 7),
    "string": (lambda: Types.STRING(), lambda n: f"é{n % 7}"),
    "tuple": (lambda: Types.TUPLE([Types.LONG(), Types.STRING()]), lambda n: (n % 7, "t")),
    "row": (lambda: Types.ROW([Types.LONG(), Types.STRING()]), lambda n: Row(n % 7, "r")),
    "boolean": (lambda: Types.BOOLEAN(), lambda n: n % 2 == 0),
    "double": (lambda: Types.DOUBLE(), lambda n: n % 7 + 0.5),
    "date": (lambda: Types.SQL_DATE(), lambda n: DAY + datetime.timedelta(days=n % 7)),
}


def configured(args):
    conf = Configuration()
    conf.set_string("python.execution-mode", args.mode)
    conf.set_string("python.fn-execution.bundle.time", "300")
    conf.set_string("state.backend.type" if args.version >= "1.18" else "state.backend", args.backend)
    conf.set_string("state.backend", args.backend)
    conf.set_string("execution.checkpointing.interval", "1 h")
    conf.set_string("state.backend.rocksdb.log.dir", "/tmp")
    conf.set_string("rest.bind-port", "0")
    conf.set_string("restart-strategy.type", "disable")
    conf.set_string("taskmanager.memory.managed.size", "256m")
    conf.set_string("taskmanager.numberOfTaskSlots", "4")
    if args.restore:
        name = "execution.state-recovery.path" if args.version >= "2" else "execution.savepoint.path"
        conf.set_string(name, args.restore)
    return conf


def source(tables, begin):
    tables.execute_sql(
        "CREATE TEMPORARY TABLE numbers (n BIGINT, ts AS TO_TIMESTAMP_LTZ(n * 1000, 3), WATERMARK FOR ts AS ts)"
        " WITH ('connector' = 'datagen',"
        f" 'rows-per-second' = '40', 'fields.n.kind' = 'sequence', 'fields.n.start' = '{begin}',"
        f" 'fields.n.end' = '{begin + 6000}')"
    )
    rows = tables.to_data_stream(tables.sql_query("SELECT n FROM numbers"))
    return rows.map(lambda r: (r[0], "x"), Types.TUPLE([Types.LONG(), Types.STRING()])).uid("numbers")


def datastream(env, args, begin):
    tables = StreamTableEnvironment.create(env)
    stream = source(tables, begin)
    names = args.names
    done = []
    everything = stream.key_by(lambda v: v[0] % ROWS, Types.LONG()).process(
        Everything("everything", names, args.probe, args.mode == "thread"), Types.LONG()
    )
    done.append(everything.uid("everything"))
    for name, (kind, key) in KEYS.items():
        done.append(
            stream.key_by(lambda v, key=key: key(v[0]), kind())
            .process(Count(f"key-{name}", args.probe), Types.LONG())
            .uid(f"key-{name}")
        )
    timed = stream.filter(lambda v: v[0] < ROWS).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_days(1000)).with_timestamp_assigner(At())
    )
    keyed = timed.key_by(lambda v: v[0] % 3, Types.LONG())
    day = Time.seconds(30) if hasattr(Time, "seconds") else Duration.of_seconds(30)
    gap = Time.milliseconds(2500) if hasattr(Time, "milliseconds") else Duration.of_millis(2500)
    wide = Time.milliseconds(3500) if hasattr(Time, "milliseconds") else Duration.of_millis(3500)
    done.append(keyed.window(TumblingEventTimeWindows.of(day)).process(Whole(), Types.LONG()).uid("tumbling"))
    if args.mode == "process":
        # In thread mode PyFlink itself fails to write their states: its own are in no namespace, and it gives them one.
        last = Types.TUPLE([Types.LONG(), Types.STRING()])
        sessions = keyed.window(EventTimeSessionWindows.with_gap(gap))
        done.append(sessions.process(Whole(), Types.LONG()).uid("session"))
        merging = keyed.window(EventTimeSessionWindows.with_gap(wide))
        done.append(merging.reduce(lambda a, b: (a[0] + b[0], "s"), output_type=last).uid("merged"))
        done.append(keyed.count_window(100).reduce(lambda a, b: (a[0] + b[0], "c"), output_type=last).uid("counted"))
    rules = MapStateDescriptor("rules", Types.STRING(), Types.LONG())
    keys = stream.key_by(lambda v: v[0] % 3, Types.LONG())
    done.append(keys.connect(stream.broadcast(rules)).process(Broadcast(rules), Types.LONG()).uid("broadcast"))
    sink = done[0].map(lambda v: 0, Types.LONG())
    for d in done[1:]:
        sink = sink.union(d.map(lambda v: 0, Types.LONG()))
    sink.print().uid("print")


class ViewAggregate(TableAggregate):
    """Counts distinct values, and keeps them in views."""

    def create_accumulator(self):
        from pyflink.table import ListView, MapView

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


class SumAggregate(TableAggregate):
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
        for o in others:
            accumulator[0] += o[0]
            accumulator[1] += o[1]

    def get_accumulator_type(self):
        return DataTypes.ROW([DataTypes.FIELD("s", DataTypes.BIGINT()), DataTypes.FIELD("n", DataTypes.BIGINT())])

    def get_result_type(self):
        return DataTypes.BIGINT()


def table(env, args, begin):
    tables = StreamTableEnvironment.create(env)
    tables.execute_sql(
        "CREATE TEMPORARY TABLE numbers (n BIGINT, ts AS TO_TIMESTAMP_LTZ(n * 1000, 3), pt AS PROCTIME(),"
        " WATERMARK FOR ts AS ts - INTERVAL '10' DAY) WITH ('connector' = 'datagen',"
        f" 'rows-per-second' = '40', 'fields.n.kind' = 'sequence', 'fields.n.start' = '{begin}',"
        f" 'fields.n.end' = '{begin + 6000}')"
    )
    tables.create_temporary_function("seen_views", udaf(ViewAggregate()))
    tables.create_temporary_function("sums", udaf(SumAggregate()))
    tables.create_temporary_function("vec", udaf(lambda v: v.sum(), result_type=DataTypes.BIGINT(), func_type="pandas"))
    # Not "n < 60": the planner would give the source a bound.
    few = f"(SELECT n, MOD(n, 5) AS k, ts, pt FROM numbers WHERE MOD(n, 1000000) < {ROWS})"
    statements = tables.create_statement_set()
    for sink, columns in (
        ("a", "k BIGINT, v BIGINT, s BIGINT"),
        ("b", "k BIGINT, s BIGINT"),
        ("c", "k BIGINT, s BIGINT"),
        ("d", "k BIGINT, s BIGINT"),
    ):
        tables.execute_sql(f"CREATE TEMPORARY TABLE sink_{sink} ({columns}) WITH ('connector' = 'blackhole')")
    statements.add_insert_sql(f"INSERT INTO sink_a SELECT k, seen_views(n), sums(n) FROM {few} GROUP BY k")
    statements.add_insert_sql(
        f"INSERT INTO sink_b SELECT k, sums(n) FROM {few} GROUP BY k, TUMBLE(ts, INTERVAL '30' SECOND)"
    )
    statements.add_insert_sql(
        f"INSERT INTO sink_c SELECT k, vec(n) FROM {few} GROUP BY k, TUMBLE(ts, INTERVAL '30' SECOND)"
    )
    statements.add_insert_sql(
        f"INSERT INTO sink_d SELECT k, vec(n) OVER (PARTITION BY k ORDER BY ts"
        f" RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND CURRENT ROW) FROM {few}"
    )
    return statements.execute().get_job_client()


def seen(args, operator):
    return sum(len(open(f).readlines()) for f in glob.glob(os.path.join(args.probe, f"{operator}-*")))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("target")
    parser.add_argument("--job", choices=["datastream", "table"], default="datastream")
    parser.add_argument("--mode", choices=["process", "thread"], default="process")
    parser.add_argument("--backend", choices=["hashmap", "rocksdb"], default="hashmap")
    parser.add_argument("--format", choices=["CANONICAL", "NATIVE"], default="CANONICAL")
    parser.add_argument(
        "--restore", help="a savepoint to start from: writes what is found to TARGET/probe instead of a savepoint"
    )
    parser.add_argument("--seconds", type=float, default=4)
    args = parser.parse_args()
    from pyflink.version import __version__ as version

    args.version = version
    args.names = [n for n in VALUES if args.mode == "process" or n not in NOT_IN_THREADS]
    args.target = os.path.abspath(args.target)
    args.probe = os.path.join(args.target, "probe")
    os.makedirs(args.probe, exist_ok=True)
    env = StreamExecutionEnvironment.get_execution_environment(configured(args))
    env.set_parallelism(1)
    env.set_max_parallelism(16)
    begin = ROWS if args.restore else 0
    if args.job == "datastream":
        datastream(env, args, begin)
        client = env.execute_async("state of every kind")
    else:
        client = table(env, args, begin)
    java = client._j_job_client
    deadline = time.time() + 240
    operators = ["everything", *(f"key-{k}" for k in KEYS)] if args.job == "datastream" else []
    while not all(seen(args, name) >= (ROWS if args.restore and name == "everything" else 1) for name in operators):
        if time.time() > deadline or java.getJobStatus().get().isTerminalState():
            print("ended early", [(name, seen(args, name)) for name in operators])
            java.getJobExecutionResult().get()
        time.sleep(0.3)
    time.sleep(args.seconds)
    if args.restore:
        java.cancel().get()
        return
    kind = getattr(get_gateway().jvm.org.apache.flink.core.execution.SavepointFormatType, args.format)
    try:
        where = java.stopWithSavepoint(False, "file://" + args.target, kind).get()
    except Exception:
        java.getJobExecutionResult().get()
        raise
    os.rename(where.removeprefix("file:"), os.path.join(args.target, "savepoint"))
    with open(os.path.join(args.target, "expected.json"), "w") as f:
        told = {
            "job": args.job,
            "mode": args.mode,
            "backend": args.backend,
            "format": args.format,
            "expected": expected(args),
        }
        json.dump({"flink": version, **told}, f, indent=1, sort_keys=True, ensure_ascii=False)


if __name__ == "__main__":
    main()
