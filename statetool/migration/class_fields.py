"""Fields of one class of the old job and of the new one: how each value of the new class comes from those of the old class.

For objects whose class only the values tell. Their steps have the class in the place of a path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, TypeVar

from statetool.errors import EncodeError
from statetool.migration.choices import Change, Choices, Step
from statetool.migration.leaves import exact_number, scalar_change
from statetool.migration.sides import NO_DEFAULT

T = TypeVar("T")
Values = Mapping[str, Any]
#: Numbers, by the letters of their types in class files.
NUMBERS: Final = {"B": "int8", "S": "int16", "I": "int32", "J": "int64", "F": "float32", "D": "float64"}
_VERBS: Final = {"widen": "widens to", "narrow": "narrows to"}


class FieldChange(NamedTuple):
    """The conversion of the values of a field that gets another type. ``note`` says which values are refused."""

    change: Change
    convert: Callable[[Any], Any]
    note: str = ""


class FieldKinds(Generic[T]):
    """What is known of the types of fields."""

    def change(self, old: T, new: T) -> FieldChange | None:
        """Return the conversion of values of one type to another, ``None`` if there is none."""
        raise NotImplementedError

    def text(self, kind: T) -> str:
        """Return a type as readable text."""
        return str(kind)

    def default(self, cls: str, name: str, kind: T) -> Any:
        """Return the value of a new field, as JSON, ``NO_DEFAULT`` if only the user knows it."""
        raise NotImplementedError

    def filled(self, value: Any, kind: T) -> Any:
        """Return a value in JSON as one of a type."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class ClassPlan:
    """The conversion of the objects of one class.

    Attributes
    ----------
    fields
        Functions from the old values of all fields to the value of each new field.
    refused
        Reason why no object can be converted, empty if there is none.
    """

    name: str
    fields: Mapping[str, Callable[[Values], Any]]
    steps: tuple[Step, ...]
    refused: str = ""

    @classmethod
    def impossible(cls, name: str, reason: str) -> ClassPlan:
        """Return the plan of a class whose objects cannot be converted."""
        return cls(name, {}, (Step(path=name, change="impossible", text=reason),), reason)

    def check(self, *, is_listed: bool) -> None:
        """Refuse an object if its class cannot be converted, or loses something that nobody was asked about.

        Raises
        ------
        EncodeError
            The error names the class.
        """
        if self.refused:
            raise EncodeError(f"{self.name}: {self.refused}")
        if is_listed:
            return
        lost = [f"{s.path}: {s.text}" for s in self.steps if s.loses or s.change == "impossible"]
        if lost:
            raise EncodeError(
                f"the first values have no object of {self.name}, and this one would change: {'; '.join(lost)}"
            )


def match_fields(
    name: str, before: Mapping[str, T], after: Mapping[str, T], kinds: FieldKinds[T], choices: Choices, *, is_key: bool
) -> ClassPlan:
    """Match the fields of two versions of a class by their names, and the names and values that the user chose."""
    fields: dict[str, Callable[[Values], Any]] = {}
    steps: list[Step] = []
    step: Step | None
    used: set[str] = set()
    for field, kind in after.items():
        path = f"{name}.{field}"
        source = choices.sources.get(path, field if field in before else None)
        if path in choices.fills or source is None:
            make, step = _added(name, field, kind, kinds, choices)
        elif source not in before:
            text = f"the old class has no field {source!r}, only {', '.join(before)}"
            make, step = _nothing, Step(path=path, change="impossible", text=text)
        else:
            used.add(source)
            if source != field:
                steps.append(Step(path=path, change="rename", text=f"renamed from {source}"))
            make, step = _kept(path, source, before[source], kind, kinds)
        fields[field] = make
        steps += [] if step is None else [step]
    for field in before:
        if field in used:
            continue
        path = f"{name}.{field}"
        if is_key:
            steps.append(Step(path=path, change="impossible", text="dropped from a key, so two keys may become equal"))
        else:
            steps.append(Step(path=path, change="drop", text="its values are dropped", loses=True))
    return ClassPlan(name, fields, tuple(steps))


def _nothing(values: Values) -> Any:
    raise EncodeError("a field without a value")


def _added(
    name: str, field: str, kind: T, kinds: FieldKinds[T], choices: Choices
) -> tuple[Callable[[Values], Any], Step]:
    path = f"{name}.{field}"
    value = choices.fills.get(path, NO_DEFAULT)
    value = kinds.default(name, field, kind) if value is NO_DEFAULT else value
    if value is NO_DEFAULT:
        text = "new field, which the class sets to an object: give its value with --fill, or its old name with --rename"
        return _nothing, Step(path=path, change="impossible", text=text, asks=True)
    try:
        filled = kinds.filled(value, kind)
    except EncodeError as error:
        return _nothing, Step(path=path, change="impossible", text=error.message)
    shown = "null" if value is None else repr(value)
    return lambda values: filled, Step(path=path, change="add", text=f"new field, set to {shown}")


def _kept(path: str, source: str, old: T, new: T, kinds: FieldKinds[T]) -> tuple[Callable[[Values], Any], Step | None]:
    if old == new:
        return lambda values: values[source], None
    found = kinds.change(old, new)
    if found is None:
        return _nothing, Step(
            path=path, change="impossible", text=f"{kinds.text(old)} cannot be converted to {kinds.text(new)}"
        )
    verb = f"{kinds.text(old)} {_VERBS.get(found.change, 'becomes')} {kinds.text(new)}"
    text = f"{verb}: {found.note}" if found.note else verb
    step = Step(path=path, change=found.change, text=text, loses=found.change == "narrow")
    return lambda values: found.convert(values[source]), step


def number_change(old: str, new: str) -> FieldChange | None:
    """Return the conversion of numbers, by the names of their logical types."""
    leaf = scalar_change(old, new) if old != new else None
    if leaf is None or new not in NUMBERS.values():
        return None
    return FieldChange(leaf.change, lambda value: exact_number(value, new), leaf.note)
