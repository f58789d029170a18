"""Savepoints with a state per serializer of a corpus of serializers, for round trips through all forms.

``python -m tests.support.checks.serializer_states DIR TARGET`` reads the cases of :mod:`tests.support.checks.serializer_check` in DIR, and writes
savepoints with up to 40 value states each below ``TARGET/serializers``. ``python -m tests.roundtrip_check TARGET --native`` checks them. Values
whose ends their serializers do not tell are left out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeAlias

from statetool.errors import StatetoolError
from statetool.formats.state_meta import StateMetaInfo
from statetool.io.cursor import Cursor
from statetool.serializers.core.base import Serializer
from statetool.serializers.table import snapshot_reader
from tests.support.checks.serializer_check import Case, find_cases, is_java_serializer
from tests.support.snapshots.build import simple
from tests.support.snapshots.canonical import Subtask, composite_key, group_of, keyed, savepoint, serializer

#: The state of a case, and the bytes of its values.
State: TypeAlias = tuple[StateMetaInfo, list[bytes]]
_LONG: Final = simple("Long")
_MOST_STATES: Final = 40


def values_of(s: Serializer, case: Case) -> list[bytes]:
    """Return the bytes of each value.

    Raises
    ------
    StatetoolError
        The serializer does not tell where a value ends.
    """
    assert case.data is not None
    c = Cursor(case.data)
    found: list[bytes] = []
    while len(found) < (len(case.values) if case.values is not None else sys.maxsize) and c.left:
        start = c.pos
        s.skip(c)
        found.append(case.data[start : c.pos])
    return found


def states_of(root: Path) -> Iterator[tuple[str, State]]:
    """Yield the module of each case, and its state."""
    for number, case in enumerate(find_cases(root)):
        if case.snapshot is None or not case.data or is_java_serializer(case.snapshot):
            continue
        if not case.context.chill and b"kryo" in case.snapshot.lower():
            continue  # no snapshot says that a unit test registers no class of Chill
        module = case.name.partition("/")[0]
        reader, c = snapshot_reader(case.context), Cursor(case.snapshot)
        try:
            is_proxied = case.snapshot[:4] in (b"\0\0\0\1", b"\0\0\0\2")
            s = reader.proxied(c) if is_proxied else reader.snapshot(c)
            values = [] if s.needs_frame else values_of(s, case)
        except StatetoolError:
            continue
        if values:
            yield module, (keyed(f"{number} {case.name}", "value", s), values)


def write_states(root: Path, target: Path) -> int:
    """Write the savepoints; return the number of states."""
    modules: dict[str, list[State]] = {}
    new = {case.name.partition("/")[0] for case in find_cases(root) if case.context.kryo == 5}
    for module, state in states_of(root):
        modules.setdefault(module, []).append(state)
    long = serializer(_LONG)
    for module, states in modules.items():
        for first in range(0, len(states), _MOST_STATES):
            some = states[first : first + _MOST_STATES]
            folder = target / "serializers" / f"{module}-{first // _MOST_STATES}"
            folder.mkdir(parents=True)
            entries = sorted(
                (meta.name, group_of(long, i, 128), composite_key(i.to_bytes(8, "big")), value)
                for meta, values in some
                for i, value in enumerate(values)
            )
            subtask = Subtask(key=_LONG, states=[meta for meta, _ in some], entries=entries)
            savepoint(folder, [subtask], version=5 if module in new else 3)
    return sum(map(len, modules.values()))


if __name__ == "__main__":
    print(f"states={write_states(Path(sys.argv[1]), Path(sys.argv[2]))}")
