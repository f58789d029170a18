"""Hash codes of keys in the new job: a key whose ``hashCode()`` changed is looked up in another key group, so its state is not found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from statetool.compatibility.classes.job_classes import has_class
from statetool.compatibility.verdicts import CheckWarning, Level, Resolution, combine
from statetool.errors import OptionError, StatetoolError, several
from statetool.formats.key_groups import key_group_for
from statetool.java.hashing.executed import Executed, is_equal_to_itself
from statetool.java.hashing.formulas import HashFormula, formula_hash, user_classes
from statetool.java.hashing.prove import Sample, sample_keys
from statetool.serializers.avro.serializer import AvroSerializer
from statetool.serializers.core.base import Serializer
from statetool.serializers.typeutils.enums import EnumSerializer
from statetool.snapshot.operator import OperatorInventory
from statetool.types.declared import TypeContext

_STABLE: Final = "Give the class a hashCode() that depends only on its values, and bootstrap the state with the keys."
#: Keys whose methods are executed.
_MOST_EXECUTED: Final = 500
_KEEP: Final = "Keep the method hashCode() of the key as it was."
_ADD: Final = "Pass all jars of the new job with --jar-b."
_COMPARE: Final = "Pass the jar of the old job with --jar-a, to see whether the class is the same."


def resolve_hash_codes(
    old: OperatorInventory, new_types: TypeContext, is_same: Callable[[str], bool] | None, *, compares: bool
) -> Resolution:
    """Check whether the keys of an operator stay in their key groups, as far as the new job's jar has formulas for their classes.

    Up to a few thousand keys are tried.

    Parameters
    ----------
    is_same
        Whether both jobs have the same class of a name, ``None`` if the jar of the old job is not known.
    compares
        Whether the backend may compare keys by ``equals``: that of the heap does, the others compare bytes.
    """
    return combine(_resolutions(old, new_types, is_same, compares=compares))


def _executed(old: OperatorInventory, key: Serializer, new_types: TypeContext, *, compares: bool) -> Resolution | None:
    """Return what the methods of the new job's classes make of the keys, ``None`` if some of them cannot be followed."""
    after = Executed(new_types)
    hasher = after.serializer(key)
    sample = sample_keys(old.keyed.sources(), key, most=_MOST_EXECUTED)
    moved = []
    for value, group in zip(sample.values, sample.groups, strict=True):
        try:
            now = key_group_for(hasher.hash_code(value), sample.max_parallelism)
        except StatetoolError:
            return None
        if after.address:
            text = (
                f"hashCode() of the key uses the address of {after.address}, which differs in each process: Flink looks up the keys of the"
                " snapshot in other key groups, and does not find them."
            )
            return Resolution.because(Level.AS_IS, text, _STABLE, CheckWarning(kind="loses", message=text))
        if after.unknown:
            return _of_other_code(old, key, sample, after)
        if now != group:
            moved.append((value, group, now))
        if compares and not is_equal_to_itself(after, key, value):
            text = f"equals() of the new job says that a key is not equal to itself, so the heap backend does not find it: {value!r}."
            return Resolution.because(Level.AS_IS, text, _KEEP, CheckWarning(kind="loses", message=text))
    if not moved:
        return Resolution(Level.AS_IS)
    value, group, now = moved[0]
    if not _explains(old, key, after, value, group, sample.max_parallelism):
        return None
    names = ", ".join(user_classes(key))
    text = (
        f"The new job does not find {several(len(moved), 'key')} of {len(sample.values)}: hashCode() of {names} changed."
        f" It puts {value!r} into key group {now}, which is stored in {group}."
    )
    return Resolution.because(Level.AS_IS, text, _KEEP, CheckWarning(kind="loses", message=text))


def _explains(
    old: OperatorInventory, key: Serializer, after: Executed, value: object, group: int, max_parallelism: int
) -> bool:
    """Return False if the classes of the old job, executed, put a key elsewhere than where it is stored: then nothing follows from it."""
    if old.types.source is None:
        return True
    before = Executed(replace(old.types, kryo=after.types.kryo))
    try:
        then = key_group_for(before.serializer(key).hash_code(value), max_parallelism)
    except StatetoolError:
        return False
    return not before.unknown and not before.address and then == group


def _of_other_code(old: OperatorInventory, key: Serializer, sample: Sample, after: Executed) -> Resolution | None:
    """Return that it is unknown if the old job executes other methods than the new one for the first key."""
    if old.types.source is None:
        return None
    before = Executed(replace(old.types, kryo=after.types.kryo))
    try:
        hasher = before.serializer(key)
        for value in sample.values:
            hasher.hash_code(value)
            if before.unknown:
                break
    except StatetoolError:
        return None
    names = {name for name, _, _ in before.visited | after.visited}
    if before.visited == after.visited or not names - set(user_classes(key)):
        return None
    text = f"Whether the new job finds the keys is unknown: hashCode() {after.unknown}, and the methods that it calls differ."
    return Resolution.because(Level.UNKNOWN, text, _KEEP, CheckWarning(kind="may_change", message=text, in_reason=True))


def _resolutions(
    old: OperatorInventory, new_types: TypeContext, is_same: Callable[[str], bool] | None, *, compares: bool
) -> Iterator[Resolution]:
    key = old.keyed.key
    classes = {} if key is None else user_classes(key)
    if key is None or not classes or new_types.source is None:
        return
    executed = _executed(old, key, new_types, compares=compares)
    if executed is not None:
        yield executed
        return
    changed = [name for name in classes if is_same is None or not is_same(name)]
    if key is None or not changed:
        return
    formula = HashFormula(()).with_types(classes, new_types)
    unknown = [
        n for n in changed if formula.of(n) is None and not isinstance(classes[n], EnumSerializer | AvroSerializer)
    ]
    for name in unknown:
        reason = new_types.hash_reason(name)
        if not has_class(new_types, name):
            if new_types.renewed or (old.types.source is not None and has_class(old.types, name)):
                continue  # That the class is missing is a finding of its own.
            yield Resolution.note(
                f"hashCode() of {name} was not compared: the jar of the new job does not have it.", _ADD
            )
        elif reason and is_same is None:
            yield Resolution.note(f"hashCode() of {name} was not compared: {reason}.", _COMPARE, by_run=True)
        elif reason:
            text = f"Whether the new job finds the keys of {name} is unknown: {reason}."
            warning = CheckWarning(kind="may_change", message=text, in_reason=True)
            yield Resolution.by_run(text, warning)
    if not formula.knows(classes):
        return
    sample = sample_keys(old.keyed.sources(), key)
    try:
        hash_code = formula_hash(formula, key)
    except OptionError:  # The class has other fields: the keys themselves have changed.
        return
    groups = [key_group_for(hash_code(value), sample.max_parallelism) for value in sample.values]
    moved = [i for i, (now, before) in enumerate(zip(groups, sample.groups, strict=True)) if now != before]
    if moved:
        first = moved[0]
        text = (
            f"The new job does not find {several(len(moved), 'key')} of {len(groups)}: hashCode() of {', '.join(changed)} changed."
            f" It puts {sample.values[first]!r} into key group {groups[first]}, which is stored in {sample.groups[first]}."
        )
        yield Resolution.because(Level.AS_IS, text, _KEEP, CheckWarning(kind="loses", message=text))
