"""Functions that fill state with the numbers below ``KEPT_NUMBERS``, and report it for all further ones.

None emits anything, so all are empty generators (``yield from ()``).
"""

from cases import KEPT_NUMBERS, STATES
from pyflink.common import Time, Types
from pyflink.datastream.functions import (
    AggregateFunction,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
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
from reports import Report, to_json

FAR_MS = 4102444800000  # 2100: timers that never fire


class Sum(ReduceFunction):
    def reduce(self, value1, value2):
        return value1 + value2


class Average(AggregateFunction):
    """Aggregate of sum and count."""

    def create_accumulator(self):
        return (0, 0)

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, a, b):
        return a[0] + b[0], a[1] + b[1]


def with_ttl(descriptor):
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.days(20000)).build())
    return descriptor


class EveryState(KeyedProcessFunction):
    """All types and kinds of state and timers; each number is a separate key."""

    def __init__(self, operator, state_names, report_folder, in_threads):
        self.operator, self.report_folder = operator, report_folder
        self.state_names, self.in_threads = state_names, in_threads

    def open(self, context):
        self.report = Report(self.report_folder, self.operator)
        self.values = {
            name: context.get_state(ValueStateDescriptor(name, STATES[name].make_type())) for name in self.state_names
        }
        self.items = context.get_list_state(ListStateDescriptor("items", Types.STRING()))
        self.sizes = context.get_map_state(MapStateDescriptor("sizes", Types.STRING(), Types.LONG()))
        self.total = context.get_reducing_state(ReducingStateDescriptor("total", Sum(), Types.LONG()))
        pair = Types.PICKLED_BYTE_ARRAY() if self.in_threads else Types.TUPLE([Types.LONG(), Types.LONG()])
        self.average = context.get_aggregating_state(AggregatingStateDescriptor("average", Average(), pair))
        self.ttl_value = context.get_state(with_ttl(ValueStateDescriptor("ttl_value", Types.STRING())))
        self.ttl_items = context.get_list_state(with_ttl(ListStateDescriptor("ttl_items", Types.LONG())))
        self.ttl_sizes = context.get_map_state(with_ttl(MapStateDescriptor("ttl_sizes", Types.LONG(), Types.STRING())))

    def process_element(self, value, ctx):
        number = value[0]
        if number < KEPT_NUMBERS:
            self.fill(number)
            ctx.timer_service().register_event_time_timer(FAR_MS + number)
            ctx.timer_service().register_processing_time_timer(FAR_MS + 2 * number)
        else:
            self.report.tell(ctx.get_current_key(), self.contents())
        yield from ()

    def fill(self, n):
        for name, state in self.values.items():
            state.update(STATES[name].value_of(n))
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

    def contents(self):
        return {
            **{name: to_json(state.value()) for name, state in self.values.items()},
            "items": list(self.items.get() or []),
            "sizes": dict(sorted(self.sizes.items())),
            "total": self.total.get(),
            "average": self.average.get(),
            "ttl_value": self.ttl_value.value(),
            "ttl_items": list(self.ttl_items.get() or []),
            "ttl_sizes": sorted([k, v] for k, v in self.ttl_sizes.items()),
        }

    def on_timer(self, timestamp, ctx):
        yield from ()


def filled(n, state_names):
    """Return the contents that :meth:`EveryState.fill` leaves for a number, computed without any state."""
    return {
        **{name: to_json(STATES[name].value_of(n)) for name in state_names},
        "items": ["a", *(f"i{i}" for i in range(n % 3))],
        "sizes": {f"m{i}": n * 10 + i for i in range(n % 4)},
        "total": n + 5,
        "average": [n + 2, 2],
        "ttl_value": f"v{n}",
        "ttl_items": [n, n + 1],
        "ttl_sizes": [[n, "s"]],
    }


class SumPerKey(KeyedProcessFunction):
    """One small state, for keys of many types."""

    def __init__(self, operator, report_folder):
        self.operator, self.report_folder = operator, report_folder

    def open(self, context):
        self.report = Report(self.report_folder, self.operator)
        self.sum = context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        number = value[0]
        if number < KEPT_NUMBERS:
            self.sum.update((self.sum.value() or 0) + number)
        else:
            self.report.tell(ctx.get_current_key(), self.sum.value())
        yield from ()


class RulesAndLastNumber(KeyedBroadcastProcessFunction):
    """Broadcast state of the first five numbers, and the last number of each key."""

    def __init__(self, rules_descriptor):
        self.rules_descriptor = rules_descriptor

    def open(self, context):
        self.last_number = context.get_state(ValueStateDescriptor("seen", Types.LONG()))

    def process_element(self, value, ctx):
        number = value[0]
        if number < KEPT_NUMBERS:
            self.last_number.update(number)
        yield from ()

    def process_broadcast_element(self, value, ctx):
        number = value[0]
        if number < 5:
            ctx.get_broadcast_state(self.rules_descriptor).put(f"r{number}", number)
        yield from ()
