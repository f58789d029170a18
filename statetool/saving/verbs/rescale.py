"""Plan a change of max parallelism: keys move to the key groups of the new number, and values are copied without decoding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from statetool.errors import OptionError, UnsupportedError, warn
from statetool.formats.key_groups import check_max_parallelism
from statetool.formats.metadata.handles import streams_of
from statetool.java.hashing.formulas import HashFormula
from statetool.java.hashing.prove import KeyProof
from statetool.saving.composition import OperatorChange
from statetool.saving.plan_checks import check_moves, needs_move, prove_moves
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.operator import OperatorInventory
from statetool.types.operators import OperatorRecord, describe_operators
from statetool.types.options import whole_number


def warn_of_chains(operators: Sequence[str], one: str, many: str, what: str) -> None:
    """Warn of operators with another max parallelism, if there are some; called by a method of a plan, for functions that users call.

    Parameters
    ----------
    one, many
        The verb for one operator, and for several.
    """
    if operators:
        words = f"{describe_operators(operators)} {one if len(operators) == 1 else many} {what}"
        warn(f"{words}: operators in one chain of the job need the same", stacklevel=4)


@dataclass(frozen=True, slots=True, kw_only=True)
class RescaleRow(OperatorRecord):
    """The effect of ``rescale`` on one operator.

    Attributes
    ----------
    keys_move
        ``no``: no keyed state, or its key groups stay; ``divisor``: the old key group determines the new one; ``hash``: by
        the key type's hash code; ``formula``: by a hash code defined in user code; ``refused``: keys cannot move.
    problem
        Why keys cannot move, and the remedy.
    formula
        The formula, in the form of a declaration.
    keys_tested, chance
        Distinct hash codes that the formula was tested on, and an upper bound of the probability that a wrong one passes.
    size_bytes
        Bytes of keyed state that are written again.
    """

    operator_id: str
    old_max_parallelism: int
    new_max_parallelism: int
    old_parallelism: int
    new_parallelism: int
    keys_move: str
    formula: str = ""
    keys_tested: int = 0
    chance: float = 0.0
    size_bytes: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class RescalePlan:
    """The operators that change; ``refusals`` say why the keys of an operator cannot move.

    ``parted`` are operators that had the same max parallelism as changed ones and keep it. Flink does not restore a chain of operators with
    different ones correctly.
    """

    operators: tuple[RescaleRow, ...]
    changes: Mapping[str, OperatorChange]
    refusals: tuple[UnsupportedError, ...] = ()
    parted: tuple[str, ...] = ()

    def warn(self) -> None:
        """Warn of ``parted`` operators; for functions that users call."""
        warn_of_chains(self.parted, "keeps", "keep", "the old max parallelism")

    def check(self) -> None:
        """Raise an error if the keys of an operator cannot move.

        Raises
        ------
        UnsupportedError
        """
        if self.refusals:
            first = self.refusals[0]
            if len(self.refusals) > 1:
                others = [str(e.where.operator) for e in self.refusals[1:]]
                first.message = f"{first.message} (likewise {', '.join(others)})"
            raise first


def plan_rescale(
    inventory: Inventory,
    max_parallelism: int | Mapping[str, int],
    *,
    parallelism: int | Mapping[str, int] | None = None,
    hashes: Mapping[str, str] | None = None,
) -> RescalePlan:
    """Plan a change of max parallelism; reads keys only if their hash code is defined in user code.

    The plan includes operators whose keys cannot move, as refused.

    Parameters
    ----------
    max_parallelism
        For all operators, or by uid (or operator id).
    parallelism
        Number of subtasks, for all operators or by uid. Unchanged by default, but at most the new max parallelism.
    hashes
        Hash formulas by full class name (:mod:`statetool.types.conventions`). If omitted, formulas are searched for.

    Raises
    ------
    OptionError, UnknownNameError, UnsupportedError
    """
    operators = _by_id(inventory)
    wanted = _by_operator(inventory, max_parallelism)
    subtasks = {} if parallelism is None else _by_operator(inventory, parallelism)
    stray = [] if isinstance(parallelism, int) else [i for i in subtasks if i not in wanted]
    if stray:
        labels = [operators[i].label for i in stray]
        raise OptionError(f"parallelism of {', '.join(labels)} without a max parallelism")
    declared = HashFormula.declared(hashes or {})
    rows, changes, refusals = [], {}, []
    for operator_id, number in wanted.items():
        operator = operators[operator_id]
        new = subtasks.get(operator_id, min(operator.state.parallelism, number))
        check_max_parallelism(number, new)
        formula = None
        try:
            check_moves(inventory.metadata, operator, number, new)
            row, formula = _plan_operator(operator, number, new, declared)
        except UnsupportedError as error:
            refusals.append(error.at(operator=operator.label))
            row = _row(operator, number, new, "refused", problem=str(error))
        rows.append(row)
        if needs_move(operator.state, number, new):
            changes[operator_id] = OperatorChange(max_parallelism=number, parallelism=new, formula=formula)
    return RescalePlan(tuple(rows), changes, tuple(refusals), tuple(_parted(operators, wanted)))


def _parted(operators: Mapping[str, OperatorInventory], wanted: Mapping[str, int]) -> Iterator[str]:
    """Yield the operators that keep a max parallelism which others do not keep."""
    numbers: dict[int, list[int]] = {}
    new = {i: wanted.get(i, o.state.max_parallelism) for i, o in operators.items()}
    for operator_id, operator in operators.items():
        numbers.setdefault(operator.state.max_parallelism, []).append(new[operator_id])
    for operator_id, operator in operators.items():
        old = operator.state.max_parallelism
        if new[operator_id] == old and set(numbers[old]) != {old}:
            yield operator.label


def _by_id(inventory: Inventory) -> dict[str, OperatorInventory]:
    return {o.state.operator_id: o for o in inventory.operators.values()}


def _by_operator(inventory: Inventory, numbers: int | Mapping[str, int]) -> dict[str, int]:
    if not isinstance(numbers, Mapping):
        return dict.fromkeys(_by_id(inventory), whole_number("max_parallelism", numbers))
    by_id: dict[str, int] = {}
    for name, number in numbers.items():
        operator_id = inventory.operator(name).state.operator_id
        if operator_id in by_id:
            raise OptionError(f"{name!r} is another name of an operator that is already given")
        by_id[operator_id] = number
    return by_id


def _plan_operator(
    operator: OperatorInventory, max_parallelism: int, parallelism: int, declared: HashFormula
) -> tuple[RescaleRow, HashFormula | None]:
    old = operator.state
    header = operator.keyed.joined_header(raw=needs_move(old, max_parallelism, parallelism))
    keys_move, proof = "no", KeyProof()
    if header is not None and max_parallelism != old.max_parallelism:
        keys_move = "divisor"
        if old.max_parallelism % max_parallelism:
            proof = prove_moves(operator, max_parallelism, declared)
            keys_move = "hash" if proof.formula is None else "formula"
    row = _row(
        operator,
        max_parallelism,
        parallelism,
        keys_move,
        formula=str(proof.formula or ""),
        keys_tested=proof.keys_tested,
        chance=proof.chance,
    )
    return row, proof.formula


def _row(
    operator: OperatorInventory, max_parallelism: int, parallelism: int, keys_move: str, **fields: Any
) -> RescaleRow:
    old = operator.state
    return RescaleRow(
        operator=operator.label,
        operator_id=old.operator_id,
        old_max_parallelism=old.max_parallelism,
        new_max_parallelism=max_parallelism,
        old_parallelism=old.parallelism,
        new_parallelism=parallelism,
        keys_move=keys_move,
        size_bytes=sum(p.size_bytes for s in old.subtasks for p in streams_of(s.managed_keyed)),
        **fields,
    )
