"""Views of an operator, tables of several states each: elements that wait, matches that have begun, windows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from typing_extensions import Unpack

from statetool.errors import OptionError
from statetool.snapshot.operator import OperatorInventory
from statetool.snapshot.views import MATCHES, WAITING, WINDOWS, is_window
from statetool.tables.option_text import Key
from statetool.tables.request import KeyedOptions, ScanRequest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class OperatorViews(ABC):
    """The views of an operator as DataFrames; ``to_arrow("waiting")`` and likewise the others need no session."""

    _operator: OperatorInventory

    @abstractmethod
    def frame(self, request: ScanRequest) -> DataFrame:
        """Return what a request asks for as a DataFrame."""

    def waiting(self, *, keys: Sequence[Key] | None = None, **options: Unpack[KeyedOptions]) -> DataFrame:
        """Return the elements that wait in an operator.

        Of asynchronous I/O the calls that had not come back, or whose results wait for an earlier one: ``value``, ``timestamp``,
        ``element`` (``record``, ``watermark``, ...), ``marker``, ``subtask``, in their order. Of complex event processing the events that the
        watermark had not reached: ``key``, ``timestamp``, ``value``.

        Parameters
        ----------
        keys, key_group, ttl, ttl_ms, now_ms, nanos, decimals, presence, on_error, columns, split_bytes, memory_bytes
            As for :meth:`Operator.keyed_state`, as are the errors; asynchronous I/O has neither ``keys`` nor ``key_group``.

        Raises
        ------
        OptionError
            Nothing waits in such an operator.
        """
        return self._view(WAITING, "no queue of elements that wait", keys, options)

    def matches(self, *, keys: Sequence[Key] | None = None, **options: Unpack[KeyedOptions]) -> DataFrame:
        """Return the matches of complex event processing that have begun: a row for each match.

        ``key``; ``status`` (``partial``, or ``completed`` and not yet emitted); ``waiting_for``, the pattern that comes next; ``state``, what
        Flink calls that inside; ``start_ms``, ``previous_ms``: times of its first and its last event (the latter where that is stored);
        ``events``, a map of patterns to their events. ``events`` is null where Flink itself would find none in its buffer.

        Parameters
        ----------
        keys, key_group, ttl, ttl_ms, now_ms, nanos, decimals, presence, on_error, columns, split_bytes, memory_bytes
            As for :meth:`Operator.keyed_state`, as are the errors.

        Raises
        ------
        OptionError
            The operator matches no patterns.
        """
        return self._view(MATCHES, "no matches of patterns", keys, options)

    def windows(
        self, name: str | None = None, *, keys: Sequence[Key] | None = None, **options: Unpack[KeyedOptions]
    ) -> DataFrame:
        """Return windows with all of their state, or one state in its long form.

        Without a name a row for each key and window: ``key``, ``window`` (global windows have no such column), and a column for each
        state that is kept by window: contents, states of triggers, the user's own. Merged windows are shown as they are now.

        Parameters
        ----------
        name
            A state whose namespace is a window: its long form.
        keys, key_group, ttl, ttl_ms, now_ms, nanos, decimals, presence, on_error, columns, split_bytes, memory_bytes
            As for :meth:`Operator.keyed_state`, as are the errors.

        Raises
        ------
        OptionError
            The operator has no windows, or the namespace of the state is none.
        """
        if name is None:
            return self._view(WINDOWS, "no state that is kept by window", keys, options)
        if name in self._operator.listed_keyed:
            namespace = self._operator.listed_keyed[name][1].namespace
            if namespace is None or not is_window(namespace):
                raise OptionError(f"state {name!r} has no window namespace", hint=f"read it with op.state({name!r})")
        return self.frame(ScanRequest.of(name, keys=keys, **options))

    def _view(self, table: str, nothing: str, keys: Sequence[Key] | None, options: KeyedOptions) -> DataFrame:
        if table not in self._operator.views:
            self._operator.check_listed("keyed", "operator")
            raise OptionError(
                f"operator {self._operator.label!r} has {nothing}", hint="op.tables are those that it has"
            )
        return self.frame(ScanRequest.of(table, keys=keys, **options))
