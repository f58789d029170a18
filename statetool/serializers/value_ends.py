"""Search for the ends of values, by kernels or, if these cannot, with the serializer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

from statetool.errors import DecodeError, StatetoolError, UndescribedClassError
from statetool.io.cursor import Cursor
from statetool.kernels.core.arrays import Bytes, Int64s
from statetool.kernels.core.codes import check
from statetool.kernels.graphs.rewrite import rewritten
from statetool.kernels.values import program as ir
from statetool.kernels.values.skip import skip_many
from statetool.kernels.values.skip_program import compile_skip

#: Maximum number of values after one of an undescribed class in which to search for other such classes.
_MAX_SEARCHED: Final = 10_000


def undescribed_error(
    error: StatetoolError, decode: Callable[[Cursor], Any], data: Bytes, pos: Int64s, end: Int64s
) -> StatetoolError:
    """Return the error that names the classes, if a value is of a class that the snapshot does not describe.

    Parameters
    ----------
    error
        The original error; its offset is a position in ``data``.
    decode
        Decodes or skips a value plainly.
    pos, end
        Ranges of the values.
    """
    offset = error.where.offset
    if offset is not None:
        for i in np.flatnonzero((pos <= offset) & (offset < end)).tolist():
            try:
                decode(Cursor(data.data, int(pos[i]), int(end[i])))
            except UndescribedClassError as plain:
                return _with_other_classes(plain, decode, data, pos[i + 1 :], end[i + 1 :])
            except StatetoolError:
                continue
    return error


def _with_other_classes(
    error: UndescribedClassError, decode: Callable[[Cursor], Any], data: Bytes, pos: Int64s, end: Int64s
) -> UndescribedClassError:
    """Return the error with the other undescribed classes in the following values, so that all can be declared at once."""
    hints, bases = {error.message: error.hint}, error.bases
    for start, stop in zip(pos[:_MAX_SEARCHED].tolist(), end[:_MAX_SEARCHED].tolist(), strict=True):
        try:
            decode(Cursor(data.data, start, stop))
        except UndescribedClassError as other:
            hints.setdefault(other.message, other.hint)
            bases |= other.bases
        except StatetoolError:
            continue
    found = UndescribedClassError("; ".join(hints), hint="; ".join(hints.values()), where=error.where)
    found.bases = bases
    return found


def find_ends(op: ir.Op, decode: Callable[[Cursor], Any], data: Bytes, pos: Int64s, end: Int64s) -> Int64s:
    """Return the position after each value, found by kernels or, if they cannot, with ``decode``."""
    prog = compile_skip(op)
    after = np.empty_like(pos)
    if prog is not None:
        try:
            check(skip_many(data, prog, pos, end, after), pos)
        except DecodeError as error:
            raise undescribed_error(error, decode, data, pos, end) from None
        return after
    unserved: Iterable[int] = range(len(pos))
    if isinstance(op, ir.Graph):
        _, _, after, served = rewritten(data, op, pos, end)
        unserved = np.flatnonzero(~served).tolist()
    for i in unserved:
        c = Cursor(data.data, int(pos[i]), int(end[i]))
        decode(c)
        after[i] = c.pos
    return after
