"""Serializer of JSON in DataSQRL (``com.datasqrl.flinkrunner.stdlib.json``), as confirmed by bytes of release 0.9.

``FlinkJsonTypeSerializer``: i4 length and JSON in UTF-8, shown as text. Its snapshot, version 3, is empty.
"""

from __future__ import annotations

import json
from typing import Any, Final

from statetool.errors import EncodeError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.core.simple import SimpleType, simple_class
from statetool.types import Scalar

_PACKAGE: Final = "com.datasqrl.flinkrunner.stdlib.json"


def _decode(c: Cursor) -> str:
    start = c.pos
    try:
        return c.bytes4("JSON").decode("utf-8")
    except UnicodeDecodeError as error:
        raise c.fail(f"JSON is not UTF-8: {error.reason}", pos=start) from error


def _encode(out: Output, value: Any) -> None:
    try:
        json.loads(value)
    except (TypeError, ValueError) as error:
        raise EncodeError(f"not JSON: {error}") from error
    out.bytes4(value.encode("utf-8"))


_JSON: Final = SimpleType(name="FlinkJsonType", logical=Scalar("string"), length=-1, decode=_decode, encode=_encode)
SNAPSHOTS: Final = {f"{_PACKAGE}.FlinkJsonTypeSerializerSnapshot": simple_class(_JSON)}
