"""Java types as text: ``int``, ``java.lang.String``, ``java.util.Map<java.lang.String, com.acme.Item[]>``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from statetool.errors import OptionError

ARRAY: Final = "[]"
PRIMITIVES: Final = {
    "boolean": "java.lang.Boolean",
    "byte": "java.lang.Byte",
    "short": "java.lang.Short",
    "char": "java.lang.Character",
    "int": "java.lang.Integer",
    "long": "java.lang.Long",
    "float": "java.lang.Float",
    "double": "java.lang.Double",
}
BOXES: Final = {box: name for name, box in PRIMITIVES.items()}
_CODES: Final = dict(zip("ZBSCIJFD", PRIMITIVES, strict=True))
_LETTERS: Final = {name: code for code, name in _CODES.items()}
_SHORT: Final = {
    **{name.rpartition(".")[2]: name for name in BOXES},
    **{n: f"java.lang.{n}" for n in ("String", "Object", "Number", "Comparable", "Iterable", "Class", "CharSequence")},
    **{
        n: f"java.util.{n}"
        for n in [
            "Collection",
            "List",
            "ArrayList",
            "LinkedList",
            "Deque",
            "Set",
            "HashSet",
            "LinkedHashSet",
            "SortedSet",
            "TreeSet",
        ]
    },
    **{
        n: f"java.util.{n}"
        for n in ("Map", "HashMap", "LinkedHashMap", "SortedMap", "TreeMap", "Optional", "UUID", "Date")
    },
    **{
        n: f"java.time.{n}" for n in ("Instant", "LocalDate", "LocalTime", "LocalDateTime", "Duration", "ZonedDateTime")
    },
    **{n: f"java.math.{n}" for n in ("BigDecimal", "BigInteger")},
}


@dataclass(frozen=True, slots=True)
class JavaType:
    """A declared type of a field; an array is ``[]`` with its element as the only argument.

    ``as_json``: its values are decoded to JSON text, whatever the type (as for a ``TreeMap`` with a comparator).
    """

    name: str
    args: tuple[JavaType, ...] = ()
    as_json: bool = False

    def __str__(self) -> str:
        if self.as_json:
            return f"json:{JavaType(self.name, self.args)}"
        if self.name == ARRAY:
            return f"{self.args[0]}[]"
        return f"{self.name}<{', '.join(map(str, self.args))}>" if self.args else self.name

    @property
    def is_array(self) -> bool:
        return self.name == ARRAY

    @property
    def binary_name(self) -> str:
        """Result of ``Class.getName()``: ``[Ljava.lang.String;`` for an array."""
        if not self.is_array:
            return self.name
        element = self.args[0]
        if element.is_array:
            return f"[{element.binary_name}"
        return f"[{_LETTERS[element.name]}" if element.name in _LETTERS else f"[L{element.name};"


OBJECT: Final = JavaType("java.lang.Object")


def from_binary_name(name: str) -> JavaType:
    """Return the type of a class by its ``Class.getName()``."""
    if not name.startswith("["):
        return JavaType(name)
    inner = name[1:]
    if inner.startswith("["):
        return JavaType(ARRAY, (from_binary_name(inner),))
    if inner.startswith("L") and inner.endswith(";"):
        return JavaType(ARRAY, (JavaType(inner[1:-1]),))
    return JavaType(ARRAY, (JavaType(_CODES.get(inner, inner)),))


def parse_java_type(text: str) -> JavaType:
    """Parse a type. Names without a package are looked up in ``java.lang`` and among common classes of ``java.util`` and other packages.

    The prefix ``json:`` decodes values of the type to JSON text.

    Raises
    ------
    OptionError
        Not a valid Java type.

    Examples
    --------
    >>> str(parse_java_type("Map<String, com.acme.Item[]>"))
    'java.util.Map<java.lang.String, com.acme.Item[]>'
    """
    if not isinstance(text, str):
        raise OptionError(f"{text!r} is not a Java type such as 'java.util.List<java.lang.String>'")
    compact = text.replace(" ", "")
    parsed, rest = _parse(compact.removeprefix("json:"), text)
    if rest:
        raise OptionError(f"{text!r} is not a Java type: {rest!r} is left over")
    return JavaType(parsed.name, parsed.args, compact.startswith("json:"))


def _parse(text: str, whole: str) -> tuple[JavaType, str]:
    end = next((i for i, ch in enumerate(text) if ch in "<>,["), len(text))
    name, rest = text[:end], text[end:]
    for wildcard in ("?extends", "?super"):
        name = name.removeprefix(wildcard)
    if not name:
        raise OptionError(f"{whole!r} is not a Java type: a name is missing")
    args: list[JavaType] = []
    if rest.startswith("<"):
        while rest and rest[0] in "<,":
            arg, rest = _parse(rest[1:], whole)
            args.append(arg)
        if not rest.startswith(">"):
            raise OptionError(f"{whole!r} is not a Java type: '>' is missing")
        rest = rest[1:]
    parsed = JavaType("java.lang.Object" if name == "?" else _SHORT.get(name, name), tuple(args))
    while rest.startswith("[]"):
        parsed, rest = JavaType(ARRAY, (parsed,)), rest[2:]
    return parsed, rest
