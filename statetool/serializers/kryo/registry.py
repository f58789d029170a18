"""Class ids and codecs: Flink's registrations and the snapshot's.

Ids 0 to 8 are the primitives (9 ``void`` in Kryo 2.24), 10 to 72 Scala's classes if flink-scala is present (1.x), 73 to 84 Flink's JDK
classes, and from 85 on the snapshot's registrations in order. A class that already has an id gets no second one, unless it is registered
with a serializer. Follows ``FlinkChillPackageRegistrar``, ``KryoUtils``.
"""

from __future__ import annotations

from typing import Final

from statetool.serializers.kryo.builtin import BY_FIELDS_IN_2
from statetool.serializers.kryo.classes import ClassTable
from statetool.serializers.kryo.codecs import libraries, scala
from statetool.serializers.kryo.codecs.scalars import SCALARS, TEXT, Body
from statetool.serializers.kryo.codecs.times import TIMES
from statetool.serializers.kryo.wire import Generation
from statetool.types.java import PRIMITIVES

_PRIMITIVE_IDS: Final = (
    "java.lang.Integer",
    "java.lang.String",
    "java.lang.Float",
    "java.lang.Boolean",
    "java.lang.Byte",
    "java.lang.Character",
    "java.lang.Short",
    "java.lang.Long",
    "java.lang.Double",
)
_FIRST_FLINK_ID: Final = 73
_FLINK_IDS: Final = (
    "java.util.Arrays$ArrayList",
    "java.util.BitSet",
    "java.util.PriorityQueue",
    "java.util.regex.Pattern",
    "java.sql.Date",
    "java.sql.Time",
    "java.sql.Timestamp",
    "java.net.URI",
    "java.net.InetSocketAddress",
    "java.util.UUID",
    "java.util.Locale",
    "java.text.SimpleDateFormat",
)
#: Charsets. Each has a separate class; Kryo 5 writes their names.
_CHARSETS: Final = "sun.nio.cs."
_ALL_BODIES: Final = {**SCALARS, **TIMES, **libraries.CLASSES}


class Registry:
    """Class ids and codecs of a Kryo serializer.

    Parameters
    ----------
    registrations, defaults
        As of :class:`~statetool.serializers.kryo.instance.KryoInstance`.
    chill
        Whether Flink's default registrations exist.
    """

    def __init__(
        self,
        gen: Generation,
        classes: ClassTable,
        registrations: tuple[tuple[str, str | None], ...],
        defaults: tuple[tuple[str, str], ...] = (),
        *,
        chill: bool,
    ) -> None:
        self.gen = gen
        self._classes = classes
        self._by_id: dict[int, str] = dict(enumerate(_PRIMITIVE_IDS))
        if gen == 2:
            self._by_id[9] = "java.lang.Void"
        if chill:
            if gen == 2:
                self._by_id.update(enumerate(scala.IDS, scala.FIRST_ID))
            self._by_id.update(enumerate(_FLINK_IDS, _FIRST_FLINK_ID))
        self._ids = {name: i for i, name in self._by_id.items()}
        self._serializers: dict[str, str] = {}
        self._defaults = defaults
        self._serializer_cache: dict[str, str | None] = {}
        next_id = _FIRST_FLINK_ID + len(_FLINK_IDS) if chill else len(self._by_id)
        for name, serializer in registrations:
            name = PRIMITIVES.get(name, name)
            if name in self._ids and serializer is None:
                continue
            self._by_id[next_id] = name
            self._ids[name] = next_id
            next_id += 1
            if serializer is not None:
                self._serializers[name] = serializer

    def name_of(self, class_id: int) -> str | None:
        """Return the class of an id."""
        return self._by_id.get(class_id)

    def id_of(self, name: str) -> int | None:
        """Return the id of a class, ``None`` if it is written by name."""
        return self._ids.get(name)

    def serializer_of(self, name: str) -> str | None:
        """Return the serializer class that the job set for a class or a supertype of it."""
        if name not in self._serializer_cache:
            self._serializer_cache[name] = self._serializers.get(name) or self._default_of(name)
        return self._serializer_cache[name]

    def _default_of(self, name: str) -> str | None:
        if not self._defaults:
            return None
        supertypes = self._classes.supertypes(name)
        return next((serializer for cls, serializer in self._defaults if cls in supertypes), None)

    def container(self, name: str) -> tuple[libraries.ReadBody, libraries.WriteBody] | None:
        """Return the reader and writer of a class with elements that a library's serializer writes."""
        return libraries.CONTAINERS.get(self.serializer_of(name) or "")

    def body(self, name: str) -> Body | None:
        """Return the body of a class that consists of one value."""
        serializer = self.serializer_of(name)
        if serializer is not None:
            return libraries.BODIES.get(serializer)
        if self.gen == 2 and name in BY_FIELDS_IN_2:
            return None
        if self.gen == 5 and name.startswith(_CHARSETS):
            return TEXT
        return _ALL_BODIES.get(name)
