"""Flink's constants for types without settings, by the texts with which code names them: ``Types.INT``, ``BasicTypeInfo.INT_TYPE_INFO``."""

from __future__ import annotations

import re
from typing import Final

from statetool.types.type_information import SIMPLE

_CONSTANT: Final = re.compile(
    r"Types\.(?P<types>\w+)|BasicTypeInfo\.(?P<basic>\w+)_TYPE_INFO|(?P<serializer>\w+)Serializer\.INSTANCE"
)
_WORD: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
#: Classes by the name of their serializer, and by the names of Flink's constants: ``BigDec`` and ``BIG_DEC``.
_BY_NAME: Final = {name: cls for cls, name in SIMPLE.items()}
_BY_CONSTANT: Final = {_WORD.sub("_", name).upper(): cls for name, cls in _BY_NAME.items()}


def basic_type(text: str) -> str | None:
    """Return the class whose type a constant of Flink is, ``None`` for other texts."""
    found = _CONSTANT.fullmatch(text)
    if found is None:
        return None
    by_name = _BY_NAME.get(found["serializer"] or "")
    return by_name or _BY_CONSTANT.get(found["types"] or found["basic"] or "")
