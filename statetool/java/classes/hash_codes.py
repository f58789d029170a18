"""Conventions of ``hashCode()`` methods from their instructions.

Covers what IDEs, Lombok, Kotlin, records, ``Objects.hash`` and Apache Commons generate, and everything else that comes to a sum, with
constant factors, of the hash codes of stored fields. Other methods have a reason instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from statetool.errors import FormatError
from statetool.java.classes.class_file import ClassFile, Member
from statetool.java.classes.class_path import ClassPath
from statetool.java.classes.evaluate import HASH_CODE, Evaluator
from statetool.java.classes.expressions import Expression, Linear, NotEvaluatedError, to_int32
from statetool.java.classes.signatures import parse_type
from statetool.types.conventions import BOOLEANS, STYLES, ZEROS, Convention, Style, null_hash
from statetool.types.logical import Scalar

_FLOAT: Final = Scalar("float32")
_DOUBLE: Final = Scalar("float64")
#: Types by descriptor whose zeros some styles hash as 0. A type variable may stand for their boxes.
_WITH_ZEROS: Final = {
    "F": (_FLOAT,),
    "D": (_DOUBLE,),
    "Ljava/lang/Float;": (_FLOAT,),
    "Ljava/lang/Double;": (_DOUBLE,),
    **dict.fromkeys(
        ("Ljava/lang/Object;", "Ljava/lang/Number;", "Ljava/lang/Comparable;", "Ljava/io/Serializable;"),
        (_FLOAT, _DOUBLE),
    ),
}
_OF_BOOLEAN: Final = (1237, 1231)
_BOOLEAN: Final = ("Z", "Ljava/lang/Boolean;")
_MAYBE_BOOLEAN: Final = (
    "Ljava/lang/Boolean;",
    "Ljava/lang/Object;",
    "Ljava/lang/Comparable;",
    "Ljava/io/Serializable;",
)
_ZERO: Final = (0, 0.0)
_BITS: Final = 1 << 32
#: Usual polynomials of one field.
_STARTS_OF_ONE: Final = {0: (0, 31), 31: (1, 31), 59: (1, 59), 17 * 31: (17, 31), 17 * 37: (17, 37), 7 * 31: (7, 31)}


def find_convention(class_path: ClassPath, cls: ClassFile) -> Convention | str:
    """Return the convention of a class's ``hashCode()``, or the reason why it has none.

    Raises
    ------
    FormatError
        A class file is damaged.
    """
    try:
        return hash_convention(class_path, cls)
    except NotEvaluatedError as reason:
        return f"its hashCode() {reason}"
    except FormatError as error:
        raise error.at(file=class_path.file_of(cls.name)) from error


def hash_convention(class_path: ClassPath, cls: ClassFile) -> Convention:
    """Return the convention of the ``hashCode()`` that a class has or inherits.

    Raises
    ------
    NotEvaluatedError
        It has none. The message continues ``hashCode() ...``.
    FormatError
        A class file is damaged.
    """
    result = Evaluator(class_path, cls).call(HASH_CODE)
    if not isinstance(result, Linear):
        raise NotEvaluatedError("does not return an int")
    convention = _convention_of(result)
    fields = {f.name: f for f in _fields_of(class_path, cls)}
    for name, style in zip(convention.fields, convention.field_styles, strict=True):
        if name not in fields or not fields[name].is_stored:
            raise NotEvaluatedError(f"reads field {name!r}, which is not stored")
        kind = parse_type(fields[name].descriptor)
        field_class = class_path.read(kind.name) if kind.kind == "class" else None
        if field_class is not None and field_class.is_enum and style not in ("name", "ordinal"):
            raise NotEvaluatedError(f"hashes the enum {name!r} by its address")
    return convention


def _fields_of(class_path: ClassPath, cls: ClassFile) -> Iterator[Member]:
    """Yield the fields of the superclasses of a class, and then its own."""
    levels, above = [cls], class_path.read(cls.superclass)
    while above is not None and all(above.name != level.name for level in levels):
        levels.append(above)
        above = class_path.read(above.superclass)
    for level in reversed(levels):
        yield from level.fields


def _convention_of(result: Linear) -> Convention:
    term = result.term
    if term is not None and term.name == "xor":
        parts = [_part_of(t) for t in _operands(term)]
        return _convention("xor", [name for name, _ in parts], [styles for _, styles in parts], "boxed")
    parts = [_part_of(t) for t, _ in result.terms]
    return _of_sum(result, [name for name, _ in parts], [styles for _, styles in parts])


def _operands(xor: Expression) -> list[Expression]:
    """Return the terms of exclusive ors inside each other."""
    found = []
    for operand in xor.args:
        term = operand.term if isinstance(operand, Linear) else None
        if term is None:
            raise NotEvaluatedError("has an exclusive or of other values than hash codes of fields")
        found += _operands(term) if term.name == "xor" else [term]
    return found


def _of_sum(result: Linear, names: list[str], styles: list[tuple[Style, ...]]) -> Convention:
    factors = [factor for _, factor in result.terms]
    shape = _polynomial(result.constant, factors)
    if len(factors) > 1 and set(factors) == {1} and not result.constant:
        return _convention("sum", names, styles, "boxed")
    if shape is None:
        return _convention("linear", names, styles, start=result.constant, factors=tuple(factors))
    preferred: Style | None = {59: "lombok", 37: "commons"}.get(shape[1])  # type: ignore[assignment]
    return _convention("polynomial", names, styles, preferred, start=shape[0], multiplier=shape[1])


def _polynomial(constant: int, factors: Sequence[int]) -> tuple[int, int] | None:
    """Return start and multiplier of the polynomial that has these factors, ``None`` if it is none."""
    if not factors or factors[-1] != 1:
        return None
    if len(factors) == 1:
        return _STARTS_OF_ONE.get(constant, (constant, 1))
    multiplier = factors[-2]
    expected = [to_int32(pow(multiplier, n, _BITS)) for n in reversed(range(len(factors)))]
    if expected != list(factors) or not multiplier % 2:
        return None
    start = to_int32(constant * pow(pow(multiplier, len(factors), _BITS), -1, _BITS))
    return start, multiplier


def _convention(
    kind: str,
    names: list[str],
    styles: list[tuple[Style, ...]],
    preferred: Style | None = None,
    *,
    start: int = 1,
    multiplier: int = 31,
    factors: tuple[int, ...] = (),
) -> Convention:
    """Return a convention with the style that most fields have."""
    base = max(STYLES, key=lambda style: (sum(style in possible for possible in styles), style == preferred))
    given = tuple(base if base in possible else possible[0] for possible in styles)
    return Convention(
        kind=kind,  # type: ignore[arg-type]
        fields=tuple(names),
        start=start,
        multiplier=multiplier,
        style=base,
        styles=() if set(given) <= {base} else given,
        factors=factors,
    )


def _part_of(term: Expression) -> tuple[str, tuple[Style, ...]]:
    """Return the field of a term, and the styles that hash it in this way."""
    if term.name == "ordinal" or (term.name == "hash" and term.args[0].name == "name"):
        enum = term if term.name == "ordinal" else term.args[0]
        style: Style = "ordinal" if term.name == "ordinal" else "name"
        return _field_of(enum.args[0])[0], (style,)
    name, descriptor, null, booleans, zero = _read_hash(term)
    styles = tuple(
        style
        for style in STYLES
        if (null is None or null_hash(style) == null)
        and (booleans is None or BOOLEANS.get(style, _OF_BOOLEAN) == booleans)
        and all(zero == (logical in ZEROS.get(style, ())) for logical in _WITH_ZEROS.get(descriptor, ()))
    )
    if not styles:
        raise NotEvaluatedError(f"hashes field {name!r} in a way that no known generator does")
    return name, styles


class _FieldHash(NamedTuple):
    """The way in which a term hashes a field.

    ``null`` is the hash code of null, ``booleans`` are those of false and true, both ``None`` if the field has none. ``zero`` is whether
    zeros hash as 0.
    """

    name: str
    descriptor: str
    null: int | None = None
    booleans: tuple[int, int] | None = None
    zero: bool = False


def _read_hash(term: Expression) -> _FieldHash:
    """Return the way in which a term hashes a field."""
    if term.name == "choice":
        return _read_choice(*term.args)
    if term.name in ("field", "unboxed"):
        name, descriptor = _field_of(term)
        return _FieldHash(name, descriptor, booleans=(0, 1) if descriptor in _BOOLEAN else None)
    if term.name == "hash":
        name, descriptor = _field_of(term.args[0])
        if descriptor.startswith("["):
            raise NotEvaluatedError(f"hashes the array {name!r} by its address")
        return _FieldHash(name, descriptor, booleans=_OF_BOOLEAN if descriptor in _MAYBE_BOOLEAN else None)
    if term.name == "elements":
        name, descriptor = _field_of(term.args[0])
        if not descriptor.startswith("[") or descriptor.startswith("[["):
            raise NotEvaluatedError(f"hashes the elements of {name!r}, whose type is {descriptor}")
        return _FieldHash(name, descriptor, null=0)
    if term.name in ("fold", "float_bits"):
        return _read_number(term.name, term.args[0])
    raise NotEvaluatedError("does not only combine hash codes of fields")


def _read_number(name: str, value: Expression) -> _FieldHash:
    """Return the parts of a long, float or double."""
    zero = False
    if value.name == "choice":
        # A double: the bits, or 0 for its zeros.
        condition, yes, no = value.args
        bits = yes if yes.name == "double_bits" else no
        zero = _is_zero_test(condition, bits, is_true=bits is no) and (no if bits is yes else yes).args == (0,)
        if not zero:
            raise NotEvaluatedError("does not only combine hash codes of fields")
        value = bits
    is_double = value.name == "double_bits"
    field, descriptor = _field_of(value.args[0] if is_double else value)
    expected = "F" if name == "float_bits" else "D" if is_double else "J"
    boxed = {"F": "Ljava/lang/Float;", "D": "Ljava/lang/Double;", "J": "Ljava/lang/Long;"}[expected]
    if descriptor not in (expected, boxed):
        raise NotEvaluatedError(f"hashes field {field!r} of type {descriptor} as another type")
    return _FieldHash(field, expected, zero=zero)


def _read_choice(condition: Expression, yes: Linear, no: Linear) -> _FieldHash:
    """Return the parts of a null test, of a boolean, or of a test for zero."""
    if condition.name == "is_null" and not yes.terms:
        field = _field_of(condition.args[0])
        inner = _read_hash(no.term) if no.term is not None else None
        if inner is not None and inner[:2] == field and inner[2] in (None, yes.constant):
            return inner._replace(null=yes.constant)
    if condition.name == "is_zero":
        (tested,) = condition.args
        term = tested.term
        if term is not None and term.name in ("field", "unboxed"):
            name, descriptor = _field_of(term)
            # Kotlin once wrote: if (flag) 1 else flag.
            no_value = Linear(0) if yes == tested else yes
            if descriptor in _BOOLEAN and not no_value.terms and not no.terms:
                return _FieldHash(name, descriptor, booleans=(no_value.constant, no.constant))
        bits = no.term
        if (
            bits is not None
            and bits.name == "float_bits"
            and yes == Linear(0)
            and _is_zero_test(condition, bits, is_true=True)
        ):
            name, descriptor = _field_of(bits.args[0])
            return _FieldHash(name, descriptor, zero=True)
    raise NotEvaluatedError("has branches that do not only test fields for null, true or zero")


def _field_of(value: Expression) -> tuple[str, str]:
    """Return the name and descriptor of a field."""
    if value.name == "unboxed":
        value = value.args[0]
    if value.name != "field":
        raise NotEvaluatedError("does not only combine hash codes of fields")
    name, descriptor = value.args
    return name, descriptor


def _is_zero_test(condition: Expression, bits: Expression, *, is_true: bool) -> bool:
    """Return True if a condition is that a float or double is zero; ``bits`` must be taken if it is not."""
    if condition.name != "is_zero" or not is_true or not bits.args:
        return False
    term = condition.args[0].term
    if term is None or term.name != "compare":
        return False
    value, zero = term.args
    return value == bits.args[0] and zero.name == "number" and zero.args[0] in _ZERO
