"""Submit the job: a compiled plan is read by the release that runs it.

Follows ``ExecNodeContext`` and ``ExecNodeMetadataUtil``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from statetool.compatibility.restore import Restore
from statetool.compatibility.step_verdicts import Assumption
from statetool.compatibility.steps.step import Result, Step


def _irrelevant(restore: Restore) -> str:
    if restore.new is not None and restore.new.columns_from_plan is not None:
        return ""
    return "no compiled plan of the new job is given"


def _tables(restore: Restore) -> Iterator[Result]:
    """Q3: tables of the catalog must have the schemas of the plan (``ContextResolvedTableJsonDeserializer``)."""
    yield Assumption(
        rule="Q3",
        text="the tables of the catalog have the schemas that the compiled plan has",
        option="EXECUTE PLAN with the same catalog",
    )


STEP: Final = Step(
    name="plans",
    title="Compiled plan",
    follows="ExecNodeContext, ContextResolvedTableJsonDeserializer",
    irrelevant=_irrelevant,
    checks=(_tables,),
)
