"""Code that does not know an operation raises an error, and never mistakes it for another one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from statetool.columns.decode import as_data, decode_column
from statetool.columns.encode import encode_column
from statetool.errors import DecodeError
from statetool.kernels.core.codes import MESSAGES, UNKNOWN_OPERATION, check
from statetool.kernels.entries import heap
from statetool.kernels.entries.changes import walk_changes
from statetool.kernels.entries.walk import KeyGroups, Rows
from statetool.kernels.graphs.flat_program import compile_graph
from statetool.kernels.graphs.rewrite import rewritten, split_values
from statetool.kernels.values import program as ir
from statetool.kernels.values.elements import element_positions, joined_counts
from statetool.kernels.values.sizes import fixed_size, least_size
from statetool.kernels.values.skip import skip_many
from statetool.kernels.values.skip_program import POJO, compile_skip
from statetool.types import Scalar
from statetool.types.options import ReadOptions


@dataclass(frozen=True, slots=True)
class Unheard:
    """An operation that nothing supports yet."""


@dataclass(frozen=True, slots=True)
class _Serializer:
    """The part of a serializer that encoding needs."""

    logical = Scalar("int64")
    nullable = False
    type_name = "Unheard"

    def program(self) -> Any:
        return Unheard()


_LONG = Scalar("int64")
_NEW: Any = Unheard()
_POS = np.zeros(1, dtype=np.int64)
_END = np.full(1, 64, dtype=np.int64)
_DATA = as_data(bytes(64))
_SERIALIZER: Any = _Serializer()


@pytest.mark.parametrize("inside", [lambda op: op, lambda op: ir.Repeated(op), lambda op: ir.Struct(("a",), (op,))])
@pytest.mark.parametrize("ask", [ir.kernel_only, compile_skip])
def test_a_new_operation_is_not_skipped(ask: Callable[[ir.Op], Any], inside: Callable[[Any], ir.Op]) -> None:
    with pytest.raises(AssertionError, match="Unheard"):
        ask(inside(_NEW))


@pytest.mark.parametrize("ask", [ir.children, fixed_size, least_size])
def test_a_new_operation_has_no_parts_and_no_fixed_size(ask: Callable[[ir.Op], Any]) -> None:
    with pytest.raises(AssertionError, match="Unheard"):
        ask(_NEW)


def test_a_new_operation_is_not_decoded() -> None:
    with pytest.raises(AssertionError, match="Unheard"):
        decode_column(_NEW, _LONG, _DATA, _POS, _END, ReadOptions())


def test_a_new_operation_is_not_encoded() -> None:
    with pytest.raises(AssertionError, match="Unheard"):
        encode_column(_SERIALIZER, pa.array([1]))


_KINDS: list[ir.Op] = [
    ir.Temporal("weeks"),  # type: ignore[arg-type]
    ir.Epoch("weeks"),  # type: ignore[arg-type]
    ir.Clock("weeks"),  # type: ignore[arg-type]
    ir.Fixed("i128"),  # type: ignore[arg-type]
    ir.BinaryData(ir.Slot("tree")),  # type: ignore[arg-type]
    ir.BinaryData(ir.Slot("array", parts=(ir.Slot("i128"),))),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("op", _KINDS)
def test_a_new_kind_of_an_operation_is_not_decoded(op: ir.Op) -> None:
    with pytest.raises((AssertionError, KeyError, ValueError)):
        decode_column(op, _LONG, _DATA, _POS, _END, ReadOptions())


@pytest.mark.parametrize("opcode", [-1, POJO + 1])
class TestUnknownOpcodes:
    def program(self, opcode: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        return np.array([opcode, 1, 1, 1], dtype=np.int64)

    def test_skipping_is_an_error(self, opcode: int) -> None:
        code, _ = skip_many(_DATA, self.program(opcode), _POS, _END, _POS.copy())
        assert code == UNKNOWN_OPERATION
        with pytest.raises(DecodeError, match="operation"):
            check((code, 0), _POS)

    def test_finding_elements_is_an_error(self, opcode: int) -> None:
        program, counts, out = self.program(opcode), np.ones(1, dtype=np.int64), _POS.copy()
        assert joined_counts(_DATA, program, _POS, _END, counts.copy())[0] == UNKNOWN_OPERATION
        none = np.empty(0, dtype=np.int64)
        code, _ = element_positions(_DATA, program, none, _POS, _END, counts, out, none, out, out)
        assert code == UNKNOWN_OPERATION

    @pytest.mark.parametrize("kind", [heap.VALUE, heap.LIST, heap.MAP, heap.TIMERS])
    def test_key_groups_of_the_heap_layout_are_an_error(self, opcode: int, kind: int) -> None:
        states = np.array([[kind, 0, 0, 0, 0]], dtype=np.int64)
        data = as_data(bytes([0, 0, 0, 0, 0, 0, 0, 0, 0, 1]) + bytes(54))
        assert _walked(data, heap.StatePrograms(self.program(opcode), 0, states)) == UNKNOWN_OPERATION

    @pytest.mark.parametrize("kind", [heap.VALUE, heap.LIST, heap.MAP, heap.TIMERS])
    def test_changes_are_an_error(self, opcode: int, kind: int) -> None:
        programs = heap.StatePrograms(self.program(opcode), 0, np.array([[kind, 0, 0, 0, 0]], dtype=np.int64))
        assert _changed(programs, {heap.VALUE: 1, heap.TIMERS: 7}.get(kind, 5)) == UNKNOWN_OPERATION


_FIXED_LONG = np.array([0, 8], dtype=np.int64)


def test_an_unknown_kind_of_state_is_an_error() -> None:
    programs = heap.StatePrograms(_FIXED_LONG, 0, np.array([[9, 0, 0, 0, 0]], dtype=np.int64))
    assert _walked(as_data(bytes([0, 0, 0, 0, 0, 0, 0, 0, 0, 1]) + bytes(54)), programs) == UNKNOWN_OPERATION
    assert _changed(programs, 1) == UNKNOWN_OPERATION


def _rows() -> Rows:
    return Rows(*(np.empty(4, dtype=np.int64) for _ in range(6)))


def _walked(data: Any, programs: heap.StatePrograms) -> int:
    cursor, seen = np.array([0, -1, -1, 0, 64], dtype=np.int64), np.zeros(1, dtype=np.uint8)
    groups = KeyGroups(_POS, _END, _POS)
    code, n = heap.walk_heap(data, 64, groups, programs, seen, cursor, np.empty(256, dtype=np.uint8), _rows())
    assert n == 0
    return int(code)


def _changed(programs: heap.StatePrograms, operation: int) -> int:
    data = as_data(bytes([operation, 0, 0]) + bytes(61))
    changes, cursor = KeyGroups(_POS, _END, _POS), np.zeros(2, dtype=np.int64)
    wanted, buf = np.ones(1, dtype=np.uint8), np.empty(256, dtype=np.uint8)
    code, n = walk_changes(data, changes, _POS, wanted, programs, cursor, buf, _rows())
    assert n == 0
    return int(code)


@pytest.mark.parametrize("kind", [-1, 99])
def test_an_unknown_part_of_a_graph_is_an_error(monkeypatch: pytest.MonkeyPatch, kind: int) -> None:
    part = ir.GraphPart("long", ir.Fixed("i64"), reference=False, classes=(ir.GraphClass(7, b"Long"),))
    layout = compile_graph(part, True)
    words = layout.words.copy()
    words[0] = kind
    monkeypatch.setattr("statetool.kernels.graphs.rewrite.compile_graph", lambda *_: layout._replace(words=words))
    graph = ir.Graph(part, True, lambda _: None)
    data = as_data(bytes([9, 2]) + bytes(62))
    with pytest.raises(DecodeError, match="operation"):
        rewritten(data, graph, _POS, _END)
    with pytest.raises(DecodeError, match="operation"):
        split_values(data, graph, _POS, _END)


def test_a_kind_of_part_that_graphs_do_not_have_is_no_program() -> None:
    part: Any = ir.GraphPart("tree", ir.Fixed("i64"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="tuple"):
        compile_graph(part, True)


def test_the_code_has_words() -> None:
    assert MESSAGES[UNKNOWN_OPERATION][0]
