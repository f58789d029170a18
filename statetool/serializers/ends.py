"""Find where values end: by kernels, or with the serializer where kernels cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

from statetool.errors import DecodeError, StatetoolError, UndescribedClassError
from statetool.io.cursor import Cursor
from statetool.kernels import program as ir
from statetool.kernels.arrays import Bytes, Positions
from statetool.kernels.codes import check
from statetool.kernels.rewrite import rewritten
from statetool.kernels.skip import skip_many
from statetool.kernels.skip_program import compile_skip

#: How many values behind one of an undescribed class are searched for other such classes.
_MAX_SEARCHED: Final = 10_000


def undescribed(
    error: StatetoolError, decode: Callable[[Cursor], Any], data: Bytes, pos: Positions, end: Positions
) -> StatetoolError:
    """Return the error that names the classes, where a value is of a class that the snapshot does not describe.

    Parameters
    ----------
    error
        What was raised; its offset is a position in ``data``.
    decode
        Decodes or skips a value plainly.
    pos, end
        Where the values are.
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
    error: UndescribedClassError, decode: Callable[[Cursor], Any], data: Bytes, pos: Positions, end: Positions
) -> UndescribedClassError:
    """Return the error with the other undescribed classes of the values behind it, so that all can be declared at once."""
    hints = {error.message: error.hint}
    for start, stop in zip(pos[:_MAX_SEARCHED].tolist(), end[:_MAX_SEARCHED].tolist(), strict=True):
        try:
            decode(Cursor(data.data, start, stop))
        except UndescribedClassError as other:
            hints.setdefault(other.message, other.hint)
        except StatetoolError:
            continue
    return UndescribedClassError("; ".join(hints), hint="; ".join(hints.values()), where=error.where)


def find_ends(op: ir.Op, decode: Callable[[Cursor], Any], data: Bytes, pos: Positions, end: Positions) -> Positions:
    """Return the position behind each value, by kernels or, where they cannot, with ``decode``."""
    prog = compile_skip(op)
    after = np.empty_like(pos)
    if prog is not None:
        try:
            check(skip_many(data, prog, pos, end, after), pos)
        except DecodeError as error:
            raise undescribed(error, decode, data, pos, end) from None
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
