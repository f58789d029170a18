"""Properties of classes: declarations (built in, or by the user), supertypes, and whether they are final."""

from __future__ import annotations

import re
from typing import Final

from statetool.serializers.kryo.builtin import BUILTIN
from statetool.serializers.kryo.codecs import libraries
from statetool.serializers.kryo.codecs.scalars import SCALARS
from statetool.serializers.kryo.codecs.times import TIMES
from statetool.serializers.kryo.model import LIST_LIKE, MAP_LIKE
from statetool.types.declared import ClassDeclaration, TypeContext
from statetool.types.java import PRIMITIVES, JavaType

#: Anonymous classes: those of enum constants with bodies.
_BODY_CLASS: Final = re.compile(r"(.+)\$\d+")
_FINAL: Final = frozenset(
    n
    for n in (*SCALARS, *TIMES)
    if n
    not in (
        "java.math.BigInteger", "java.math.BigDecimal", "java.util.BitSet", "java.net.InetSocketAddress", "java.util.TimeZone",
        "java.util.SimpleTimeZone", "sun.util.calendar.ZoneInfo", "java.util.Date", "java.sql.Date", "java.sql.Time",
        "java.sql.Timestamp", "java.util.GregorianCalendar", "java.util.concurrent.atomic.AtomicInteger",
        "java.util.concurrent.atomic.AtomicLong", "java.util.concurrent.atomic.AtomicBoolean",
    )
) | {"java.util.Optional"}  # fmt: skip


class ClassTable:
    """Classes known without their registration: built-in ones, and those that the user declared, which take precedence."""

    def __init__(self, context: TypeContext) -> None:
        self._declared: dict[str, ClassDeclaration | None] = {**BUILTIN, **{c.name: c for c in context.classes}}
        self._context = context
        self._final: dict[JavaType, bool] = {}

    def find(self, name: str) -> ClassDeclaration | None:
        """Return the declaration under exactly this name."""
        if name not in self._declared:
            self._declared[name] = self._context.find(name)
        return self._declared[name]

    def declared(self, name: str) -> ClassDeclaration | None:
        """Return the declaration of a class; a constant with a body has a separate class, ``Color$1``."""
        declaration = self.find(name)
        if declaration is None and (inner := _BODY_CLASS.fullmatch(name)) is not None:
            outer = self.find(inner[1])
            return outer if outer is not None and outer.kind == "enum" and not outer.final else None
        return declaration

    def supertypes(self, name: str) -> set[str]:
        """Return a class with its known superclasses and interfaces."""
        supertypes = {name, "java.lang.Object", *libraries.superclasses(name)}
        supertypes |= {"java.util.Collection"} if name in LIST_LIKE else set()
        supertypes |= {"java.util.Map"} if name in MAP_LIKE else set()
        unvisited = [name]
        while unvisited:
            declaration = self.find(unvisited.pop())
            added = set(declaration.extends) - supertypes if declaration is not None else set()
            supertypes |= added
            unvisited += added
        return supertypes

    def is_final(self, declared: JavaType) -> bool:
        """Return True if Kryo omits the class of values of a declared type."""
        final = self._final.get(declared)
        if final is None:
            final = self._final[declared] = self._find_final(declared)
        return final

    def _find_final(self, declared: JavaType) -> bool:
        while declared.is_array:
            declared = declared.args[0]
        if declared.name in PRIMITIVES or declared.name in _FINAL:
            return True
        declaration = self.find(declared.name)
        return declaration is not None and declaration.final
