"""Expected content of each operator's states after all numbers below ``KEPT_NUMBERS`` were processed.

It is computed by the rules of the cases, without any state.
"""

import json
from collections import Counter

from cases import KEPT_NUMBERS, KEYS, STATES, key_operator
from reports import to_json
from state_functions import filled


def numbers_by_remainder(divisor):
    return {remainder: range(remainder, KEPT_NUMBERS, divisor) for remainder in range(divisor)}


def expected_of_table_job():
    numbers_by_key = numbers_by_remainder(5)
    return {
        "agg0$l": {key: [f"l{n}" for n in numbers] for key, numbers in numbers_by_key.items()},
        "agg0$m": {key: {f"m{n % 2}": n for n in numbers} for key, numbers in numbers_by_key.items()},
        "accumulators": {
            key: [[len(numbers), None, None], [sum(numbers), len(numbers)]] for key, numbers in numbers_by_key.items()
        },
    }


def expected_of_datastream_job(state_names):
    numbers_by_key = numbers_by_remainder(3)
    keyed_numbers = [(key, n) for key, numbers in numbers_by_key.items() for n in numbers]
    return {
        "everything": {n: filled(n, state_names) for n in range(KEPT_NUMBERS)},
        "types": {name: STATES[name].declared for name in state_names},
        "tumbling": [[key, 30000 * (n // 30), [n, "x"]] for key, n in keyed_numbers],
        "seen": {key: max(numbers) for key, numbers in numbers_by_key.items()},
        "rules": {f"r{n}": n for n in range(5)},
        "session": [[key, 1000 * n, [n, "x"]] for key, n in keyed_numbers],
        "merged": {key: sum(numbers) for key, numbers in numbers_by_key.items()},
        "counted": {key: [len(numbers), sum(numbers)] for key, numbers in numbers_by_key.items()},
        **{key_operator(type_name): sums_per_key(case.key_of) for type_name, case in KEYS.items()},
    }


def sums_per_key(key_of):
    sums = Counter()
    for n in range(KEPT_NUMBERS):
        sums[json.dumps(to_json(key_of(n)))] += n
    return [[json.loads(key), total] for key, total in sums.items()]
