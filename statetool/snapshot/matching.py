"""Match of operators: which operator of one job is which of another, with the evidence.

Flink finds state by operator id (``StateAssignmentOperation``). Ids that Flink generates change with the job graph, those of compiled plans
with the query. Nothing is guessed: two operators are matched only if nothing contradicts it and neither fits another operator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, Literal, get_args

from statetool.errors import OptionError, UnknownNameError, several
from statetool.formats.operator_id import operator_id_for_uid
from statetool.snapshot.operator_facts import OperatorFacts, evidence, other_contradictions, state_contradictions
from statetool.snapshot.uids import find_operator
from statetool.types.operators import OperatorLabel

Verdict = Literal["same", "given", "matched", "ambiguous", "only in A", "only in B"]
_VERDICTS: Final = get_args(Verdict)
_AGAIN: Final = "run: statetool match A B --match OLD=NEW --write FILE, and pass --match FILE"
#: Number of operators of B that a row names with the reason for or against them.
_MOST_SHOWN: Final = 3
#: Of an operator of a job graph that is not the first one of its chain.
_NO_ID: Final = "may be {0.label.name} in the chain of {0.in_chain}, whose id no job graph tells: match with a snapshot of the new job"


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """An operator of A and its partner in B.

    Attributes
    ----------
    verdict
        ``same`` (the same id), ``given`` (by the user), ``matched``, ``ambiguous``, ``only in A``, ``only in B``.
    old_uid, old_id, old_name
        The operator of A, empty if there is none. The uid or name is empty if it is not known.
    new_uid, new_id, new_name
        The operator of B, empty if there is none.
    has_state
        Whether the operator has state. One without state needs no partner.
    evidence
        The facts that both have in common, differences, and why other operators do not fit.
    candidates
        Operators of B that nothing rules out, by uid or id, if the match is ambiguous.
    """

    verdict: Verdict
    old_uid: str = ""
    old_id: str = ""
    old_name: str = ""
    new_uid: str = ""
    new_id: str = ""
    new_name: str = ""
    has_state: bool
    evidence: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()

    @property
    def old(self) -> str:
        """The operator of A for people, empty if there is none."""
        return OperatorLabel(self.old_id, self.old_uid, self.old_name).display if self.old_id else ""

    @property
    def new(self) -> str:
        """The operator of B for people, empty if there is none."""
        return OperatorLabel(self.new_id, self.new_uid, self.new_name).display if self.new_id else ""

    @property
    def question(self) -> str:
        """The question that only the user can decide, with the options that do, empty if there is none."""
        if self.verdict != "ambiguous":
            return ""
        options = " or ".join(f"--match {self.old_uid or self.old_id}={candidate}" for candidate in self.candidates)
        several_fit = several(len(self.candidates), "operator")
        return f"{several_fit} of B may be {self.old}, and nothing decides it: add {options}"


@dataclass(frozen=True, slots=True)
class Matching:
    """The operators of two jobs: those of A with their partners, then those that only B has."""

    rows: tuple[Match, ...]

    @property
    def ok(self) -> bool:
        """Whether each operator of A that has state has a partner."""
        return not any(m.has_state and m.verdict in ("ambiguous", "only in A") for m in self.rows)

    @property
    def questions(self) -> tuple[str, ...]:
        """The questions that only the user can decide, about operators that have state."""
        return tuple(m.question for m in self.rows if m.has_state and m.question)

    @property
    def changes(self) -> dict[str, str]:
        """The new uid, or the new id, by old id, of the operators of A that have another id in B, for :func:`statetool.change_uids`.

        Raises
        ------
        OptionError
            An operator that has state is ambiguous.
        """
        if questions := self.questions:
            asked = "; ".join(questions[:_MOST_SHOWN])
            more = f"; and {len(questions) - _MOST_SHOWN} more" if len(questions) > _MOST_SHOWN else ""
            raise OptionError(f"not each operator has one partner: {asked}{more}", hint=_AGAIN)
        return {
            m.old_id: m.new_uid if m.new_uid and operator_id_for_uid(m.new_uid) == m.new_id else m.new_id
            for m in self.rows
            if m.verdict in ("given", "matched") and m.old_id != m.new_id
        }

    def check_fits(self, old: Mapping[str, OperatorLabel], new: Mapping[str, OperatorLabel] | None) -> None:
        """Check that the rows are those of two jobs, whose operators are given by id. The new one may be unknown.

        Raises
        ------
        OptionError
            An operator of a row does not exist, or there is no row for an operator of A.
        """
        pairs = [m for m in self.rows if m.has_state and m.verdict in ("same", "given", "matched")]
        own = {m.old_id for m in self.rows if m.old_id}
        for side, name in (
            *(("A", m.old) for m in self.rows if m.old_id and m.old_id not in old),
            *(("B", m.new) for m in pairs if new is not None and m.new_id not in new),
        ):
            raise OptionError(f"the match is that of other jobs: {side} has no operator {name}", hint=_AGAIN)
        for label in (label for operator_id, label in old.items() if operator_id not in own):
            raise OptionError(f"the match is that of other jobs: it has no operator {label.display} of A", hint=_AGAIN)

    def record(self) -> list[dict[str, Any]]:
        """Return the rows as JSON, which :meth:`parse` reads."""
        return [asdict(m) for m in self.rows]

    @classmethod
    def parse(cls, record: Any) -> Matching:
        """Read rows from JSON.

        Raises
        ------
        OptionError
            The JSON is not that of a match.
        """
        if not isinstance(record, list) or not all(map(_is_row, record)):
            raise OptionError("not the rows of a match", hint=_AGAIN)
        tuples = ("evidence", "candidates")
        return cls(tuple(Match(**{**row, **{name: tuple(row[name]) for name in tuples}}) for row in record))


def _is_row(row: Any) -> bool:
    kinds = {"has_state": bool, "evidence": list, "candidates": list}
    names = [f.name for f in fields(Match)]
    return (
        isinstance(row, dict)
        and row.keys() == set(names)
        and row["verdict"] in _VERDICTS
        and all(isinstance(row[name], kinds.get(name, str)) for name in names)
    )


def match_operators(old: Sequence[OperatorFacts], new: Sequence[OperatorFacts], given: Mapping[str, str]) -> Matching:
    """Match the operators of two jobs.

    Parameters
    ----------
    given
        Operators of B by operators of A, by uid, name, id or id prefix.

    Raises
    ------
    UnknownNameError, OptionError
        A given operator does not exist or is given twice, or the keys or states of a given pair contradict each other. Other types of values
        do not, because a migration may convert them.
    """
    return Matching(tuple(_Pairs(old, new, given).rows()))


class _Pairs:
    """The pairs of two jobs' operators, by their positions."""

    def __init__(self, old: Sequence[OperatorFacts], new: Sequence[OperatorFacts], given: Mapping[str, str]) -> None:
        self.old = old
        self.new = new
        self.given = _given_pairs(old, new, given)
        by_id = {o.label.operator_id: j for j, o in enumerate(new) if j not in self.given.values()}
        ids = {
            i: by_id[o.label.operator_id]
            for i, o in enumerate(old)
            if i not in self.given and o.label.operator_id in by_id
        }
        self.same = {i: j for i, j in ids.items() if _is_same(old[i], new[j])}
        taken_old, taken_new = {*self.given, *self.same}, {*self.given.values(), *self.same.values()}
        free = [j for j in range(len(new)) if j not in taken_new]
        self.fitting = {
            i: [j for j in free if not any(_contradictions(o, new[j]))] for i, o in enumerate(old) if i not in taken_old
        }
        self.matched = dict(self._unique_pairs())
        self._keep_ids(ids)

    def _unique_pairs(self) -> Iterator[tuple[int, int]]:
        """Yield the pairs that fit nothing else and have evidence. Of several that fit, the only one with the same query counts."""
        for only_query in (False, True):
            edges = {
                i: [j for j in fits if not only_query or _is_same_query(self.old[i], self.new[j])]
                for i, fits in self.fitting.items()
            }
            times: dict[int, int] = {}
            for j in (j for fits in edges.values() for j in fits):
                times[j] = times.get(j, 0) + 1
            for i, fits in edges.items():
                if len(fits) == 1 and times[fits[0]] == 1 and any(evidence(self.old[i], self.new[fits[0]])):
                    yield i, fits[0]

    def _keep_ids(self, ids: Mapping[int, int]) -> None:
        """Add the pairs with the same id and contradictions, if neither has or may have another partner: Flink restores the one as the other."""
        open_new = {j for i, fits in self.fitting.items() if i not in self.matched for j in fits}
        for i, j in ids.items():
            if i not in self.same and not self.fitting[i] and j not in self.matched.values() and j not in open_new:
                self.same[i] = j

    def rows(self) -> list[Match]:
        """Return a row per operator of A, then the operators that only B has."""
        paired = {*self.given.values(), *self.same.values(), *self.matched.values()}
        rows = [self._row(i, paired) for i, old in enumerate(self.old) if old.label]
        asked = {j for i, fits in self.fitting.items() if i not in self.matched for j in fits}
        for j, operator in enumerate(self.new):
            if j not in paired and j not in asked and operator.label:
                rows.append(Match(verdict="only in B", has_state=operator.has_state, **_side("new", operator)))
        return rows

    def _row(self, i: int, paired: set[int]) -> Match:
        if i in self.given:
            return self._pair_row("given", i, self.given[i])
        if i in self.same:
            return self._pair_row("same", i, self.same[i], "the same operator id")
        old = self.old[i]
        if i in self.matched:
            if self.new[self.matched[i]].label:
                return self._pair_row("matched", i, self.matched[i])
            fitting = [self.new[self.matched[i]]]
        else:
            fitting = [self.new[j] for j in self.fitting[i] if j not in paired]
        candidates = [new for new in fitting if new.label]
        unknown = [_NO_ID.format(new) for new in fitting if not new.label][:1]
        return Match(
            verdict="ambiguous" if candidates else "only in A",
            has_state=old.has_state,
            evidence=(*(_common_with(old, candidates) if fitting else self._ruled_out(old)), *unknown),
            candidates=tuple(str(new.label) for new in candidates),
            **_side("old", old),
        )

    def _pair_row(self, verdict: Literal["given", "same", "matched"], i: int, j: int, *known: str) -> Match:
        old, new = self.old[i], self.new[j]
        differing = (f"differs: {text}" for text in _contradictions(old, new))
        return Match(
            verdict=verdict,
            has_state=old.has_state,
            evidence=(*known, *(() if known else evidence(old, new)), *differing),
            **_side("old", old),
            **_side("new", new),
        )

    def _ruled_out(self, old: OperatorFacts) -> list[str]:
        """Return why operators of B that have a name, a state or a kind of node in common are not the one, the nearest first."""
        if old.node is None and old.has_plan and any(not new.has_run for new in self.new):
            return ["no compiled plan holds it, as it is not in that of A: match with a savepoint of the new job"]
        against = [(list(_contradictions(old, new)), new) for new in self.new if _are_alike(old, new)]
        nearest = sorted((found for found in against if found[0]), key=lambda found: len(found[0]))
        return [f"not {new.label.display}: {texts[0]}" for texts, new in nearest[:_MOST_SHOWN]]


def _common_with(old: OperatorFacts, candidates: Sequence[OperatorFacts]) -> Iterator[str]:
    """Yield what the first operators that may be the one have in common with it."""
    for new in candidates[:_MOST_SHOWN]:
        yield f"may be {new.label.display}: {', '.join(evidence(old, new)) or 'nothing tells'}"


def _are_alike(old: OperatorFacts, new: OperatorFacts) -> bool:
    """Return True if two operators have a name, a state or a kind of plan node in common."""
    if old.node is not None and new.node is not None and old.node.kind == new.node.kind:
        return True
    return bool(old.name and old.name == new.name) or not {*(old.states or ())}.isdisjoint(new.states or ())


def _given_pairs(
    old: Sequence[OperatorFacts], new: Sequence[OperatorFacts], given: Mapping[str, str]
) -> dict[int, int]:
    """Return the given pairs by positions; errors as for :func:`match_operators`."""
    pairs: dict[int, int] = {}
    for before, after in given.items():
        i, j = _position(old, before, "A"), _position(new, after, "B")
        if i in pairs:
            raise OptionError(f"operator {old[i].label.display!r} of A is given twice", hint="pass one --match for it")
        if j in pairs.values():
            raise OptionError(f"operator {new[j].label.display!r} of B is given twice", hint="pass one --match for it")
        against = next(state_contradictions(old[i], new[j], values=False), None)
        if against is not None:
            raise OptionError(
                f"{old[i].label.display!r} of A is not {new[j].label.display!r} of B: {against}",
                hint=f"leave out --match {before}={after}, or rename it without a match (run: statetool uid A NEW {before}={after})",
            )
        pairs[i] = j
    return pairs


def _position(operators: Sequence[OperatorFacts], name: str, side: str) -> int:
    labels = [o.label for o in operators]
    try:
        return labels.index(find_operator([label for label in labels if label], name))
    except (UnknownNameError, OptionError) as error:
        error.message = f"{side}: {error.message}"
        raise


def _contradictions(old: OperatorFacts, new: OperatorFacts) -> Iterator[str]:
    yield from state_contradictions(old, new)
    yield from other_contradictions(old, new)


def _is_same(old: OperatorFacts, new: OperatorFacts) -> bool:
    """Return True if two operators with the same id are the same.

    Ids that follow from the job graph, or from the number of a plan's node, may be those of other operators in another job: they do not
    count against a contradiction. Uids that the job sets do.
    """
    uid, planned = old.label.uid or new.label.uid, old.node is not None and new.node is not None
    if not planned and operator_id_for_uid(uid) == old.label.operator_id:
        return True
    return not any(_contradictions(old, new))


def _is_same_query(old: OperatorFacts, new: OperatorFacts) -> bool:
    return old.node is not None and new.node is not None and old.node.query == new.node.query


def _side(side: Literal["old", "new"], operator: OperatorFacts) -> dict[str, Any]:
    label = operator.label
    return {f"{side}_uid": label.uid, f"{side}_id": label.operator_id, f"{side}_name": label.name}
