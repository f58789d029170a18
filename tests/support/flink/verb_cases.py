"""Verbs that write keyed state, applied to the savepoints of :mod:`tests.support.flink.forms`, with what Flink should find in each copy."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

import statetool
from tests.support.checks.roundtrip_check import bootstraps_of
from tests.support.flink.corpus_cases import is_one_of, keep_rows

#: The content of a snapshot by operator, as in ``expected.json``.
Expected: TypeAlias = dict[str, Any]
#: Operators of the job: keys are numbers, and texts.
LONG, STRING = "f-long", "f-string"
#: A key of the operator ``LONG``, and the time of its new timer.
_KEY, _TIME = -5, 1_900_000_000_500


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A copy to write: of the savepoint ``base``, to ``target``, in the form ``style``, with other files in ``work``.

    The new job has a release and a backend.
    """

    base: str
    target: str
    work: Path
    style: Mapping[str, Any]
    release: str
    backend: Literal["rocksdb", "heap", "forst"]

    def beside(self, name: str) -> str:
        """Return the path of another savepoint."""
        return str(self.work / name)


def _states(expected: Expected, operator: str) -> dict[str, Any]:
    found: dict[str, Any] = expected[operator]["keyed_state"]["states"]
    return found


def _rescale(request: Request, expected: Expected) -> None:
    numbers = {LONG: 256, STRING: 500}
    statetool.rescale(request.base, request.target, numbers, parallelism=3, **request.style)
    for name, number in numbers.items():
        expected[name]["max_parallelism"] = number


def _convert(request: Request, expected: Expected) -> None:
    statetool.convert(request.base, request.target, **request.style)


def _transform(request: Request, expected: Expected) -> None:
    def double(table: pa.Table) -> pa.Table:
        return table.set_column(table.schema.get_field_index("sum"), "sum", pc.multiply(table["sum"], 2))

    statetool.load(request.base)[LONG].transform(double, states=["sum"]).write(request.target, **request.style)
    for row in _states(expected, LONG)["sum"]["rows"]:
        row["value"] *= 2


def _set_values(request: Request, expected: Expected) -> None:
    statetool.set_values(
        request.base, request.target, LONG, _KEY, {"text": "another"}, add_timers=[("event", _TIME)], **request.style
    )
    (row,) = (row for row in _states(expected, LONG)["text"]["rows"] if row["key"] == _KEY)
    row["value"] = "another"
    timer = {"key": _KEY, "namespace": None, "timestamp": _TIME}
    expected[LONG]["keyed_state"]["event_time_timers"].append(timer)


def _narrower(base: str, target: str) -> str:
    """Write the savepoint of an older job, with a type of a state that the job has widened since."""

    def narrow(table: pa.Table) -> pa.Table:
        return table.set_column(table.schema.get_field_index("sum"), "sum", table["sum"].cast(pa.int32()))

    statetool.load(base)[LONG].transform(narrow, states=["sum"]).write(target, format="same")
    return target


def _migrate(request: Request, expected: Expected) -> None:
    old = _narrower(request.base, request.beside("old"))
    statetool.migrate(old, request.target, to=request.base, flink_version=request.release, **request.style)


def _catch_up(request: Request, expected: Expected) -> None:
    a = _narrower(request.base, request.beside("a"))
    # Only the files of a canonical savepoint tell what they were made from.
    statetool.migrate(a, request.beside("migrated"), to=request.base, format="canonical")
    b = request.beside("b")
    statetool.set_values(a, b, LONG, _KEY, {"text": "another"}, add_timers=[("event", _TIME)], checkpoint_id=100)
    statetool.catch_up(request.beside("migrated"), a, b, request.target, to=request.base, **request.style)
    (row,) = (row for row in _states(expected, LONG)["text"]["rows"] if row["key"] == _KEY)
    row["value"] = "another"
    timer = {"key": _KEY, "namespace": None, "timestamp": _TIME}
    expected[LONG]["keyed_state"]["event_time_timers"].append(timer)


def _upgrade(request: Request, expected: Expected) -> None:
    # The backend is that of the new job, in each format.
    style = {**request.style, "backend": request.backend}
    statetool.upgrade(request.base, request.target, flink_version=request.release, **style)


def _graft(request: Request, expected: Expected) -> None:
    alone = request.beside("alone")
    statetool.drop(request.base, alone, [STRING])
    statetool.graft(alone, request.base, request.target, [STRING], max_parallelism=250, **request.style)
    expected[STRING]["max_parallelism"] = 250


def _split(request: Request, expected: Expected) -> None:
    statetool.split(request.base, request.target, request.beside("second"), [STRING], **request.style)
    del expected[STRING]


def _merge(request: Request, expected: Expected) -> None:
    first, second = request.beside("first"), request.beside("second")
    statetool.split(request.base, first, second, [STRING])
    statetool.merge(first, second, request.target, **request.style)


def _move_state(request: Request, expected: Expected) -> None:
    """Move a state that the job has moved before, back."""
    both, without = request.beside("both"), request.beside("without")
    statetool.graft(request.base, request.base, both, {LONG: "another"})
    names = [name for name in ("text", "map") if name in _states(expected, LONG)]
    statetool.drop(both, without, states={LONG: names})
    statetool.move_state(without, request.target, "another", LONG, names, **request.style)


def _keep(request: Request, expected: Expected) -> None:
    keys = [row["key"] for row in _states(expected, LONG)["sum"]["rows"]][::3]
    statetool.keep(request.base, request.target, keys, operators=[LONG], **request.style)
    assert keep_rows(expected, lambda name, key: name != LONG or is_one_of(key, keys)) > 0


def _sample(request: Request, expected: Expected) -> None:
    statetool.sample(request.base, request.target, key_groups="0-63", **request.style)
    kept = {}
    for name in (LONG, STRING):
        table = statetool.load(request.base)[name].to_arrow("keyed_state", key_group=True, states=["sum"])
        groups = zip(table["key"].to_pylist(), table["key_group"].to_pylist(), strict=True)
        kept[name] = [key for key, group in groups if group < 64]
    assert keep_rows(expected, lambda name, key: is_one_of(key, kept[name])) > 0


def _purge(request: Request, expected: Expected) -> None:
    now = 1_900_000_000_010
    statetool.purge(request.base, request.target, event_timers_before_ms=now, **request.style)
    for operator in expected.values():
        keyed = operator["keyed_state"]
        keyed["event_time_timers"] = [t for t in keyed["event_time_timers"] if t["timestamp"] >= now]


def _erase(request: Request, expected: Expected) -> None:
    keys = [row["key"] for row in _states(expected, LONG)["sum"]["rows"]][::3]
    statetool.erase(request.base, request.target, keys, operators=[LONG], **request.style)
    assert keep_rows(expected, lambda name, key: name != LONG or not is_one_of(key, keys)) > 0


def _drop(request: Request, expected: Expected) -> None:
    names = [name for name in ("text", "kept list") if name in _states(expected, LONG)]
    statetool.drop(request.base, request.target, states={LONG: names}, **request.style)
    for name in names:
        del _states(expected, LONG)[name]


def _rename_states(request: Request, expected: Expected) -> None:
    """Rename states back that an older job had under other names, two of them under each other's."""
    old = request.beside("old")
    statetool.rename_states(request.base, old, LONG, {"text": "list", "list": "text", "sum": "total"}, format="same")
    back = {"list": "text", "text": "list", "total": "sum"}
    statetool.rename_states(old, request.target, LONG, back, **request.style)


def _change_uids(request: Request, expected: Expected) -> None:
    """Change the uid back that the operator had in an older job."""
    statetool.change_uids(request.base, request.beside("old"), {LONG: "another"})
    statetool.change_uids(request.beside("old"), request.target, {"another": LONG})


def _copy(request: Request, expected: Expected) -> None:
    statetool.copy(request.base, request.target)


def _set_elements(request: Request, expected: Expected) -> None:
    """Change elements of a list state beside the keyed state."""
    elements = statetool.bootstrap_list_state("elements", pa.table({"value": range(9)}))
    writer = statetool.SavepointWriter.from_existing(statetool.load(request.base))
    writer.with_operator(LONG, elements).write(request.beside("more"), format="same")
    statetool.set_elements(
        request.beside("more"), request.target, LONG, "elements", where="value < 3", change={"value": 77}, add=[-1]
    )
    rows = [*range(3, 9), 77, 77, 77, -1]
    expected[LONG]["operator_state"] = {"elements": {"mode": "list", "rows": rows}}


def _bootstrap(request: Request, expected: Expected) -> None:
    """Write the tables of all operators as new state, in the format of the base instead of its state."""
    opened = statetool.load(request.base)
    is_same = request.style["format"] == "same"
    writer = statetool.SavepointWriter.from_existing(opened) if is_same else statetool.SavepointWriter.new()
    for name in (LONG, STRING):
        number = expected[name]["max_parallelism"]
        writer = writer.with_operator(name, *bootstraps_of(opened[name], None), parallelism=2, max_parallelism=number)
    writer.write(request.target, flink_version=request.release, **request.style)


#: Each writes a copy and changes the expected content as the copy should be.
CASES: Final[Mapping[str, Callable[[Request, Expected], None]]] = {
    "rescale": _rescale,
    "convert": _convert,
    "transform": _transform,
    "set_values": _set_values,
    "migrate": _migrate,
    "catch_up": _catch_up,
    "upgrade": _upgrade,
    "graft": _graft,
    "split": _split,
    "merge": _merge,
    "move_state": _move_state,
    "keep": _keep,
    "sample": _sample,
    "purge": _purge,
    "bootstrap": _bootstrap,
    "erase": _erase,
    "drop": _drop,
    "rename_states": _rename_states,
    "change_uids": _change_uids,
    "copy": _copy,
    "set_elements": _set_elements,
}
#: They have no parameter for the form: keyed state keeps that of the base.
CARRYING: Final = frozenset({"change_uids", "copy", "set_elements"})


def write_case(verb: str, request: Request, expected: Mapping[str, Any]) -> Expected:
    """Write a copy by a verb; return what Flink should find in it."""
    changed: Expected = copy.deepcopy(dict(expected))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of timers, and of asynchronous state
        CASES[verb](request, changed)
    return changed
