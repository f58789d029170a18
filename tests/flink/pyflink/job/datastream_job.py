"""The job of the DataStream API: state of every type and kind, keys of every type, windows, broadcast state."""

from cases import KEPT_NUMBERS, KEYS, key_operator
from number_source import create_number_table
from pyflink.common import Duration, Time, Types
from pyflink.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from pyflink.datastream.functions import ProcessWindowFunction
from pyflink.datastream.state import MapStateDescriptor
from pyflink.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from pyflink.table import StreamTableEnvironment
from state_functions import EveryState, RulesAndLastNumber, SumPerKey


class NumberAsSecond(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return 1000 * value[0]


class KeepElements(ProcessWindowFunction):
    """Window function that needs all elements of a window, so that its state is a list of them."""

    def process(self, key, context, elements):
        return [0]


def submit(env, *, mode, state_names, report_folder, first_number):
    """Submit the job, and return its client."""
    numbers = number_stream(env, first_number)
    every_state = EveryState("everything", state_names, report_folder, mode == "thread")
    outputs = [
        numbers.key_by(lambda v: v[0] % KEPT_NUMBERS, Types.LONG())
        .process(every_state, Types.LONG())
        .uid("everything"),
        *keys_of_every_type(numbers, report_folder),
        *windows(numbers, mode),
        broadcast(numbers),
    ]
    first, *others = (output.map(lambda v: 0, Types.LONG()) for output in outputs)
    first.union(*others).print().uid("print")
    return env.execute_async("state of every kind")


def number_stream(env, first_number):
    """Return a stream of pairs of number and ``x``."""
    tables = StreamTableEnvironment.create(env)
    create_number_table(tables, first_number, "ts AS TO_TIMESTAMP_LTZ(n * 1000, 3), WATERMARK FOR ts AS ts")
    rows = tables.to_data_stream(tables.sql_query("SELECT n FROM numbers"))
    return rows.map(lambda r: (r[0], "x"), Types.TUPLE([Types.LONG(), Types.STRING()])).uid("numbers")


def keys_of_every_type(numbers, report_folder):
    return [
        numbers.key_by(lambda v, key_of=case.key_of: key_of(v[0]), case.make_type())
        .process(SumPerKey(key_operator(type_name), report_folder), Types.LONG())
        .uid(key_operator(type_name))
        for type_name, case in KEYS.items()
    ]


def windows(numbers, mode):
    """Return windows of the stored numbers, none of which ever fires: watermarks are a thousand days behind."""
    late = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_days(1000))
    keyed = (
        numbers.filter(lambda v: v[0] < KEPT_NUMBERS)
        .assign_timestamps_and_watermarks(late.with_timestamp_assigner(NumberAsSecond()))
        .key_by(lambda v: v[0] % 3, Types.LONG())
    )
    tumbling = keyed.window(TumblingEventTimeWindows.of(Time.seconds(30)))
    outputs = [tumbling.process(KeepElements(), Types.LONG()).uid("tumbling")]
    if mode == "process":
        # In thread mode PyFlink itself fails to write their states: they have no namespace, but it assigns one.
        pair = Types.TUPLE([Types.LONG(), Types.STRING()])
        # Numbers of a key are three seconds apart: shorter gaps give one session per number, longer ones merge them all.
        lone_sessions = keyed.window(EventTimeSessionWindows.with_gap(Time.milliseconds(2500)))
        merged_sessions = keyed.window(EventTimeSessionWindows.with_gap(Time.milliseconds(3500)))
        outputs += [
            lone_sessions.process(KeepElements(), Types.LONG()).uid("session"),
            merged_sessions.reduce(lambda a, b: (a[0] + b[0], "s"), output_type=pair).uid("merged"),
            keyed.count_window(100).reduce(lambda a, b: (a[0] + b[0], "c"), output_type=pair).uid("counted"),
        ]
    return outputs


def broadcast(numbers):
    rules = MapStateDescriptor("rules", Types.STRING(), Types.LONG())
    keyed = numbers.key_by(lambda v: v[0] % 3, Types.LONG())
    return keyed.connect(numbers.broadcast(rules)).process(RulesAndLastNumber(rules), Types.LONG()).uid("broadcast")
