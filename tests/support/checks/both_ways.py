"""Comparison of kernels with the plain decoder: equal columns, or an error at the same place."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from statetool.columns.from_plain import plain_to_arrow
from statetool.columns.types import arrow_type
from statetool.errors import StatetoolError, UnsupportedError
from statetool.serializers.core.base import Serializer
from statetool.types.options import ReadOptions
from tests.support.values.arrow_columns import by_kernels, one_by_one, rows_of

_TTL = ({"ttl": "show"}, {"ttl": "raw"}, {"ttl": "hide_expired", "ttl_ms": 1000, "now_ms": 1_700_000_000_000})


READ_OPTIONS = st.builds(
    lambda ttl, **others: ReadOptions(**ttl, **others),
    ttl=st.sampled_from(_TTL),
    nanos=st.sampled_from(("error", "companion", "truncate")),
    decimals=st.sampled_from(("decimal", "string")),
)


def same_both_ways(s: Serializer, raw: bytes, starts: list[int], ends: list[int], options: ReadOptions) -> None:
    try:
        values, ends_found = one_by_one(s, raw, starts, ends)
        expected = plain_to_arrow(values, s.logical, options)
    except StatetoolError:
        with pytest.raises(StatetoolError) as caught:
            by_kernels(s, raw, starts, ends, options)
        offset = caught.value.where.offset
        if not isinstance(caught.value, UnsupportedError):
            assert offset is not None
            assert min(starts) <= offset <= max(ends)
        return
    column, after = by_kernels(s, raw, starts, ends, options)
    column.validate(full=True)
    assert column.type == expected.type == arrow_type(s.logical, options)
    assert rows_of(column) == rows_of(expected)
    assert after == ends_found
