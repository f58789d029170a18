"""State of Python operators: byte arrays with values written by PyFlink's coders.

In process mode, where Python runs in a separate process, the Flink state is named ``python-state-`` plus the Python state's name:

- Value, reducing and aggregating states are list states of ``byte[]`` with one value in one array.
- List states are also list states of ``byte[]``, where an array contains all values added together, one after another.
- Map and broadcast states are maps of ``ByteArrayWrapper`` to ``byte[]``, each with one value.

The values are described in :mod:`statetool.serializers.pyflink.coders`. In thread mode, where Python runs inside the JVM, states are
Flink's with Java types, and only pickles are byte arrays, without a length prefix.

Follows ``BeamKeyedStateStore``, ``BeamOperatorStateStore`` and ``pyflink.fn_execution.state_impl`` (process mode),
``pyflink.fn_execution.embedded.java_utils`` (thread mode).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from statetool.errors import EncodeError, OptionError, StatetoolError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.values.program import Counted, Framed, Op, PerRecord, kernel_only
from statetool.serializers.core.base import Serializer
from statetool.serializers.pyflink.coders import Coder, coder_of, refuse_pickle, unpickle
from statetool.serializers.runtime import TtlSerializer, unwrap
from statetool.serializers.typeutils.collections import MapSerializer
from statetool.serializers.typeutils.composite import sequence
from statetool.types import ListType, LogicalType, Scalar
from statetool.types.declared import TypeContext
from statetool.types.python_types import PythonState, PythonType

#: Prefix of the state names of Python operators in process mode.
PYTHON_STATE: Final = "python-state-"
#: PyFlink's internal map of merged windows.
_MERGING: Final = "merging-window-set"
_ARRAYS: Final = ("BytePrimitiveArray", "ByteArrayWrapper")
_VALUE, _KEY = "VALUE_SERIALIZER", "KEY_SERIALIZER"


class BareSerializer(Serializer):
    """One value in the encoding of a PyFlink coder, without the frame of a byte array."""

    def __init__(self, array: Serializer, kind: PythonType, coder: Coder) -> None:
        super().__init__(array.snapshot_class, array.snapshot_version)
        self.kind = kind
        self.coder = coder

    @property
    def type_name(self) -> str:
        return f"Python {self.kind}"

    @property
    def logical(self) -> LogicalType:
        return self.coder.logical

    def decode(self, c: Cursor) -> Any:
        return self.coder.decode(c)

    def encode(self, out: Output, value: Any) -> None:
        try:
            self.coder.encode(out, value)
        except (TypeError, AttributeError, ValueError) as e:
            if isinstance(e, StatetoolError):
                raise
            raise EncodeError(f"{value!r} is not a {self.kind}: {e}") from e

    def skip(self, c: Cursor) -> None:
        self.coder.decode(c)

    def program(self) -> Op:
        return self.coder.program

    def write_payload(self, out: Output) -> None:
        raise NotImplementedError("a value without its byte array is not a type of a state")


class PythonSerializer(Serializer):
    """A Flink byte array with one value written by a PyFlink coder, or (``many``) several, one after another.

    Attributes
    ----------
    array
        Serializer of the byte array, which is also the one in the snapshot.
    item
        Serializer of a value inside it.
    """

    def __init__(self, array: Serializer, item: BareSerializer, *, many: bool) -> None:
        super().__init__(array.snapshot_class, array.snapshot_version)
        self.legacy_bytes, self.proxy_bytes = array.legacy_bytes, array.proxy_bytes
        self.array = array
        self.item = item
        self.many = many

    @property
    def type_name(self) -> str:
        return f"{self.item.type_name}{', ...' if self.many else ''}"

    @property
    def logical(self) -> LogicalType:
        return ListType(self.item.logical) if self.many else self.item.logical

    def single(self) -> PythonSerializer:
        """Return the serializer of arrays with one value each."""
        return PythonSerializer(self.array, self.item, many=False)

    def decode(self, c: Cursor) -> Any:
        inner = c.slice(c.i4(), "byte array")
        if self.many:
            return list(self._values(inner))
        value = self.item.decode(inner)
        inner.expect_end(f"a {self.item.kind}")
        return value

    def _values(self, c: Cursor) -> Iterator[Any]:
        while c.left:
            start = c.pos
            yield self.item.decode(c)
            if c.pos == start:
                raise c.fail(f"a {self.item.kind} that takes no bytes", pos=start)

    def encode(self, out: Output, value: Any) -> None:
        inner = Output()
        for item in sequence(value, self.type_name) if self.many else (value,):
            self.item.encode(inner, item)
        out.bytes4(inner)

    def skip(self, c: Cursor) -> None:
        c.skip(c.i4())

    def program(self) -> Op:
        op = self.item.program()
        return PerRecord(self.decode) if self.many or not kernel_only(op) else Framed(op)

    def write_payload(self, out: Output) -> None:
        self.array.write_payload(out)


class PickleSerializer(Serializer):
    """A byte array that is a pickle (thread mode)."""

    def __init__(self, array: Serializer, *, unsafe_pickle: bool) -> None:
        super().__init__(array.snapshot_class, array.snapshot_version)
        self.legacy_bytes, self.proxy_bytes = array.legacy_bytes, array.proxy_bytes
        self._array = array
        self._loaded = unsafe_pickle

    @property
    def type_name(self) -> str:
        return "Python pickle"

    @property
    def logical(self) -> LogicalType:
        return Scalar("string" if self._loaded else "binary")

    def decode(self, c: Cursor) -> Any:
        raw = c.bytes4("pickle")
        return unpickle(raw) if self._loaded else raw

    def encode(self, out: Output, value: Any) -> None:
        if self._loaded:
            refuse_pickle(out, value)
        self._array.encode(out, value)

    def skip(self, c: Cursor) -> None:
        c.skip(c.i4())

    def program(self) -> Op:
        return PerRecord(self.decode) if self._loaded else Counted()

    def write_payload(self, out: Output) -> None:
        self._array.write_payload(out)


def python_part(serializer: Serializer) -> PythonSerializer | None:
    """Return the declared serializer of a state's values or elements, without the TTL wrapper; ``None`` if there is none."""
    inner = unwrap(serializer)
    if isinstance(inner, TtlSerializer):
        inner = unwrap(inner.value)
    return inner if isinstance(inner, PythonSerializer) else None


def declared_in_python(name: str, serializers: Mapping[str, Serializer], context: TypeContext) -> dict[str, Serializer]:
    """Return the serializers of a state with the Python types that the user declared for it.

    Raises
    ------
    OptionError
        The state is not of the declared kind.
    """
    declarations = dict(context.python)
    declared = declarations.get(name, declarations.get(name.removeprefix(PYTHON_STATE)))
    if declared is None:
        return dict(serializers)
    contents, is_map = _contents(serializers)
    arrays = sum(_count_arrays(s) for s in contents.values())
    if not name.startswith(PYTHON_STATE):
        # Thread mode: only pickles and bytes are byte arrays; for everything else the snapshot has the type.
        binders = [binder for kind in declared.types for binder in _in_thread_mode(kind, context.unsafe_pickle)]
        fits = True
    else:
        binders = [_coder_binder(kind, declared, context.unsafe_pickle) for kind in declared.types]
        fits = is_map == (declared.kind == "map")
    if not fits or arrays != len(binders):
        raise OptionError(
            f"state {name!r} is declared as {declared} and is a {'map' if is_map else contents[_VALUE].type_name}"
            f" with {arrays} byte arrays",
            hint=f"declare {_fitting_descriptor(is_map)} with the types that the state's descriptor has in the Python job",
        ).at(state=name)
    unused_binders = iter(binders)
    return {**serializers, **{k: _bound(s, unused_binders) for k, s in sorted(contents.items())}}


def what_to_declare(name: str, serializers: Mapping[str, Serializer]) -> str:
    """Return the hint for an undeclared state of a Python operator; empty for all other states."""
    if not name.startswith(PYTHON_STATE):
        return ""
    contents, is_map = _contents(serializers)
    if not any(_count_arrays(s) for s in contents.values()):
        return ""
    short = name.removeprefix(PYTHON_STATE)
    if short == _MERGING:
        return f"bytes of a Python job until declared: --python '{short}=MapState(TIME_WINDOW, TIME_WINDOW)'"
    return f"bytes of a Python job until declared: --python '{short}={_fitting_descriptor(is_map)}', as its descriptor in the job says"


def _contents(serializers: Mapping[str, Serializer]) -> tuple[dict[str, Serializer], bool]:
    """Return the serializers of a state's contents, and whether they are keys and values."""
    contents = {k: s for k, s in serializers.items() if k in (_KEY, _VALUE)}
    return contents, len(contents) == 2 or isinstance(unwrap(contents[_VALUE]), MapSerializer)


def _fitting_descriptor(is_map: bool) -> str:
    return "MapState(KEY, VALUE)" if is_map else "TYPE or ListState(TYPE)"


_Binder: TypeAlias = Callable[[Serializer], Serializer]


def _coder_binder(kind: PythonType, declared: PythonState, unsafe_pickle: bool) -> _Binder:
    coder, many = coder_of(kind, unsafe_pickle=unsafe_pickle), declared.kind == "list"
    return lambda array: PythonSerializer(array, BareSerializer(array, kind, coder), many=many)


def _in_thread_mode(kind: PythonType, unsafe_pickle: bool) -> Iterator[_Binder]:
    """Yield the replacement for each byte array that a type is or contains, in thread mode."""
    if kind.name in ("PICKLED_BYTE_ARRAY", "ROW", "TUPLE"):
        yield lambda array: PickleSerializer(array, unsafe_pickle=unsafe_pickle)
    elif kind.name == "PRIMITIVE_ARRAY":
        if kind.args[0].name == "BYTE":
            yield lambda array: array
    else:
        for nested in kind.args:
            yield from _in_thread_mode(nested, unsafe_pickle)


def _count_arrays(serializer: Serializer) -> int:
    return (serializer.type_name in _ARRAYS) + sum(_count_arrays(s) for _, s in serializer.children())


def _bound(serializer: Serializer, binders: Iterator[_Binder]) -> Serializer:
    if serializer.type_name in _ARRAYS:
        return next(binders)(serializer)
    for step, part in serializer.children():
        changed = _bound(part, binders)
        if changed is not part:
            serializer = serializer.with_child(step, changed)
    return serializer
