"""Match of the operators of two jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeGuard

from statetool.api.load import inventory_of

if TYPE_CHECKING:
    from statetool.api.savepoint import Savepoint
    from statetool.snapshot.matching import Matching
    from statetool.snapshot.operator_facts import OperatorFacts

_JSON: Final = ".json"


def match(a: str | Savepoint, b: str | Savepoint, *, given: Mapping[str, str] | None = None) -> Matching:
    """Match the operators of two jobs whose ids differ, and return each pair with its evidence.

    Flink finds state by operator id. Ids that Flink generates change with the parallelism, the chaining and the query, and those of compiled
    plans with the numbers of the plan's nodes. Operators with the same id are pairs, unless names, states or plan nodes contradict an id that
    Flink generated. Others are pairs if they have the same states and types, name, or plan node, nothing contradicts it, and neither fits
    another operator. Nothing is guessed: two operators that fit one are ambiguous.

    Only headers are read.

    Parameters
    ----------
    a
        The snapshot that has the state: its path, or an open one. Open it with ``columns_from_plan=`` to compare the compiled plans too.
    b
        A snapshot of the new job. Or the compiled plan of a job that has not run yet, a ``.json`` file: its operators are those that
        ``EXECUTE PLAN`` creates. Or a job graph: the URL ``http://host:8081/jobs/<id>/plan``, or a ``.json`` file with the answer of
        ``/jobs/<id>``. It tells names, and the id of the first operator of each chain.
    given
        ``{operator of A: operator of B}``, by uid, name, id or id prefix: pairs that only you know.

    Returns
    -------
    Matching
        ``rows`` has a :class:`Match` per operator: ``verdict`` is ``same``, ``given``, ``matched``, ``ambiguous``, ``only in A`` or
        ``only in B``. ``ok`` says whether each operator of A that has state has a partner, ``questions`` what you have to decide, and
        ``changes`` are for :func:`change_uids`.

    Raises
    ------
    UnknownNameError, OptionError
        A given operator does not exist or is given twice, the states of a given pair contradict each other, or a plan does not fit its
        snapshot.
    FormatError
        A header or a plan is damaged.

    Examples
    --------
    >>> import statetool
    >>> matching = statetool.match("savepoint-1a2b", "savepoint-of-new-job")  # doctest: +SKIP
    >>> statetool.change_uids("savepoint-1a2b", "renamed", matching.changes)  # doctest: +SKIP
    """
    from statetool.snapshot.matching import match_operators

    old = _facts(a)
    return match_operators(old, _facts(b, old), given or {})


def _facts(side: str | Savepoint, others: Sequence[OperatorFacts] = ()) -> list[OperatorFacts]:
    from statetool.operations.cluster.job_graph import fetch_graph_facts, is_graph_url, read_graph_facts
    from statetool.snapshot.operator_facts import planned_facts, snapshot_facts
    from statetool.sql_plans.compiled_plan import CompiledPlan

    if not has_no_state(side):
        return snapshot_facts(inventory_of(side))
    if is_graph_url(side):
        return fetch_graph_facts(side)
    of_graph = read_graph_facts(side)
    return planned_facts(CompiledPlan.read(side), others) if of_graph is None else of_graph


def has_no_state(side: str | Savepoint) -> TypeGuard[str]:
    """Return True for a compiled plan or a job graph, which describe a job without a snapshot."""
    from statetool.operations.cluster.job_graph import is_graph_url

    return isinstance(side, str) and (side.endswith(_JSON) or is_graph_url(side))
