"""New raw keyed state with timers (:mod:`statetool.formats.timers.raw_timers`), from the entries of timer states."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Final

import numpy as np

from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.state_meta import StateMetaInfo
from statetool.formats.timers.raw_timers import DOMAINS, IDENTIFIER
from statetool.io.output import Output
from statetool.kernels.core.arrays import Bytes, Int64s
from statetool.kernels.entries.timers import unflip_timers
from statetool.serializers.runtime import TimerSerializer

_VERSION: Final = 2


class RawTimerWriter:
    """Writer of the timers of one subtask. All key groups are written, also those without timers, as Flink does.

    Parameters
    ----------
    write
        Takes the bytes of the stream.
    groups
        Key groups of the subtask.
    states
        The timer states by their ids in the entries.

    Attributes
    ----------
    offsets
        Offset of each key group.
    """

    def __init__(self, write: Callable[[bytes], object], groups: range, states: Mapping[int, StateMetaInfo]) -> None:
        self._write, self._groups = write, groups
        self.offsets: list[int] = []
        self._size = 0
        self._services: dict[str, TimerSerializer] = {}
        #: Name of the service, and domain, by state id.
        self._places: dict[int, tuple[str, str]] = {}
        for state, meta in states.items():
            assert isinstance(meta.value, TimerSerializer)
            domain, _, service = meta.name.removeprefix("_timer_state/").partition("_")
            self._places[state] = service, domain
            self._services[service] = meta.value
        #: Number and bytes of the timers of the current key group.
        self._timers: dict[tuple[str, str], list[tuple[int, bytes]]] = {}

    def add(self, batch: EntryBatch, order: Int64s) -> None:
        """Append timers, those of one state in a key group together. Key groups ascend."""
        place = batch.group[order] << 16 | batch.state[order]
        edges = [0, *(np.flatnonzero(np.diff(place)) + 1).tolist(), len(order)]
        for start, stop in pairwise(edges):
            own = order[start:stop]
            self._go_to(int(batch.group[own[0]]))
            out: Bytes = np.empty(int((batch.key_end - batch.key)[own].sum()), dtype=np.uint8)
            unflip_timers(batch.data, own, batch.key, batch.key_end, out)
            self._timers.setdefault(self._places[int(batch.state[own[0]])], []).append((len(own), out.tobytes()))

    def finish(self) -> None:
        """Write the rest of the key groups."""
        self._go_to(self._groups.stop)

    def _go_to(self, number: int) -> None:
        """Write the key groups before one."""
        while self._groups.start + len(self.offsets) < number:
            self._write_group()

    def _write_group(self) -> None:
        out = Output(IDENTIFIER)
        out.i4(_VERSION)
        out.i4(len(self._services))
        for service, timer in self._services.items():
            out.utf(service)
            for nested in timer.nested:
                nested.write_snapshot(out)
            for domain in DOMAINS:
                parts = self._timers.get((service, domain), [])
                out.i4(sum(n for n, _ in parts))
                out += b"".join(raw for _, raw in parts)
        self._timers.clear()
        self.offsets.append(self._size)
        self._size += len(out)
        self._write(bytes(out))
