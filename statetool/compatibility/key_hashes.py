"""Hash codes of keys in the new job: a key whose ``hashCode()`` changed is looked up in another key group, so its state is not found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from statetool.compatibility.job_classes import has_class
from statetool.compatibility.verdicts import CheckWarning, Level, Resolution, combine
from statetool.errors import OptionError, several
from statetool.formats.key_groups import key_group_for
from statetool.hashing.formulas import HashFormula, formula_hash, user_classes
from statetool.hashing.prove import sample_keys
from statetool.serializers.avro import AvroSerializer
from statetool.serializers.enums import EnumSerializer
from statetool.snapshot.operator import OperatorInventory
from statetool.types.declared import TypeContext

_KEEP: Final = "Keep the method hashCode() of the key as it was."
_ADD: Final = "Pass all jars of the new job with --jar-b."
_COMPARE: Final = "Pass the jar of the old job with --jar-a, to see whether the class is the same."


def resolve_hash_codes(
    old: OperatorInventory, new_types: TypeContext, is_same: Callable[[str], bool] | None
) -> Resolution:
    """Check whether the keys of an operator stay in their key groups, as far as the new job's jar has formulas for their classes.

    Up to a few thousand keys are tried.

    Parameters
    ----------
    is_same
        Whether both jobs have the same class of a name, ``None`` if the jar of the old job is not known.
    """
    return combine(_resolutions(old, new_types, is_same))


def _resolutions(
    old: OperatorInventory, new_types: TypeContext, is_same: Callable[[str], bool] | None
) -> Iterator[Resolution]:
    key = old.keyed.key
    classes = {} if key is None else user_classes(key)
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
