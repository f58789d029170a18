"""Serializers of splits, enumerators, writers and committables that the job's jar has (``SimpleVersionedSerializer``).

Their bytes begin with a version and name no class. Those of connectors that statetool knows are compared by their versions. For all others, the
classes of both jars tell whether the new job reads the bytes as the old one wrote them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from statetool.compatibility.restore import Restore
from statetool.compatibility.step_verdicts import Assumption
from statetool.compatibility.steps.step import Found, is_unknown
from statetool.snapshot.operator import OperatorInventory

_INTERFACE: Final = "org.apache.flink.core.io.SimpleVersionedSerializer"
_SHOWN: Final = 5


def check_own_serializers(
    restore: Restore, rule: str, what: str, operator: OperatorInventory
) -> Iterator[Found | Assumption]:
    """Yield that it is unknown whether the job reads the state of a source or sink, unless both jars have the same serializers.

    Parameters
    ----------
    what
        A noun phrase for the state.
    """
    classes = restore.job.classes
    after = None if classes is None else classes.new.source
    if classes is None or after is None:
        return
    before = classes.old.source
    if before is None:
        text = f"the classes that read {what} of {operator.label.display} did not change"
        yield Assumption(rule=rule, text=text, option="the jar of the old job (--jar-a)")
        return
    names = [n for n in before.implementations(_INTERFACE) if not before.is_abstract(n)]
    changed = [n for n in names if not before.has_same_code(n, after)]
    if not names:
        text = f"the classes that read {what} of {operator.label.display} are those of Flink"
        yield Assumption(rule=rule, text=text, option="all jars of the old job (--jar-a)")
    elif changed:
        shown = ", ".join(changed[:_SHOWN]) + (", ..." if len(changed) > _SHOWN else "")
        text = f"Only code of the job reads {what}, and {shown} changed or {'is' if len(changed) == 1 else 'are'} gone in the new job: whether it reads the old bytes is unknown."
        yield is_unknown(rule, text, "Restore a copy of the job from this snapshot to find out.", operator)
