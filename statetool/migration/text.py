"""JSON format of migration plans."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from statetool.entries.joined_headers import meta_bytes
from statetool.errors import OptionError, UnknownNameError, suggest
from statetool.migration.choices import Choices
from statetool.migration.conversion import TypeConversion
from statetool.migration.plan import MigrationPlan, StateMigration, migration_of, refusals_of_state
from statetool.migration.sql_changes import OperatorStep
from statetool.serializers.core.base import all_parts
from statetool.serializers.kryo.serializer import KryoSerializer
from statetool.snapshot.inventory import Inventory
from statetool.sql_plans.aggregates import RowNames
from statetool.types.declared import TypeContext

#: The reason against a plan without the new job's classes.
_CLASSES: Final = "its values have classes whose new versions no plan stores"
_AGAIN: Final = "write the plan again with statetool check A B --write-plan FILE"
_KEYS: Final = "no plan stores a change of keys: migrate with --to and the compiled plans"
_COMPUTED: Final = "no plan stores how whole states are computed: migrate with --to and the compiled plans"
_WITH_JOB: Final = "migrate with --to and --jar-b"


@dataclass(frozen=True, slots=True, kw_only=True)
class _WrittenState:
    """The entry of a state in a plan. ``target`` is the state's new description."""

    uid: str
    state: str
    scope: Literal["keyed", "operator"]
    target: bytes
    choices: Choices
    names: RowNames
    new_names: RowNames


def plan_record(plan: MigrationPlan) -> dict[str, Any]:
    """Return a plan as JSON. Of ``steps``, which are for reading, only ``accept`` is parsed again."""
    kryo = next((s.conversion.types.kryo for s in plan.states), None)
    return {
        "version": 1,
        "metadata_version": plan.metadata_version,
        "kryo": kryo,
        "refused": [
            *plan.refused,
            *(f"{k.uid}: {k.text}: {_KEYS}" for k in plan.keys),
            *(f"{uid}: {_COMPUTED}" for uid in plan.recomputed),
        ],
        "states": [_state_record(s) for s in plan.states],
        **({"operators": [_operator_record(o) for o in plan.operators]} if plan.operators else {}),
    }


def _state_record(state: StateMigration) -> dict[str, Any]:
    choices, names = state.choices, state.conversion.names
    return {
        "uid": state.uid,
        "state": state.state,
        "scope": state.scope,
        "before": state.before,
        "after": state.after,
        "steps": [
            {
                "path": s.path,
                "change": s.change,
                "text": s.text,
                "accept": (s.path, s.change) in choices.accept if s.loses else None,
            }
            for s in state.steps
        ],
        "from": dict(choices.sources),
        "fills": dict(choices.fills),
        "constants": {path: dict(names) for path, names in choices.constants.items()},
        "last_access_ms": choices.last_access_ms,
        **({"columns": {"before": dict(names), "after": dict(state.conversion.new_names)}} if names else {}),
        **({"classes": classes} if (classes := _new_classes(state.conversion)) else {}),
        "target": base64.b64encode(state.conversion.after).decode(),
    }


def _operator_record(one: OperatorStep) -> dict[str, Any]:
    return {
        "uid": one.uid,
        "name": one.name,
        "change": one.change,
        "text": one.text,
        "accept": one.accepted if one.loses else None,
        "new_state": one.new_state,
        "drops": one.drops,
    }


def _read_operator(entry: Any, inventory: Inventory) -> OperatorStep:
    try:
        new_state = entry["new_state"]
        return OperatorStep(
            uid=inventory.operator(entry["uid"]).label,
            name=str(entry["name"]),
            change=entry["change"],
            text=str(entry["text"]),
            loses=entry["accept"] is not None,
            accepted=entry["accept"] is True,
            new_state=None if new_state is None else str(new_state),
            drops=entry["drops"] is True,
        )
    except (AttributeError, KeyError, TypeError) as e:
        raise OptionError(f"not a valid operator of a migration plan: {e!r}", hint=_AGAIN) from e


def _new_classes(conversion: TypeConversion) -> list[str]:
    """Return the classes of values whose new version a plan does not store: Kryo's fields, and all objects whose class only the values tell."""
    old, new = conversion.before_types, conversion.types
    if (old.source, old.classes) == (new.source, new.classes):
        return []
    stored = replace(conversion, types=_types_of_plan(old, new.kryo)).meta
    names = {name for name, _ in conversion.objects}
    for name, serializer in conversion.meta.serializers.items():
        before = set(stored.serializers[name].declarations())
        names |= {c.name for c in before.symmetric_difference(serializer.declarations())}
        names |= {p.type_class for p in all_parts(serializer) if isinstance(p, KryoSerializer) and p.holds_objects}
    return sorted(names)


def _types_of_plan(types: TypeContext, kryo: Any) -> TypeContext:
    """Return the classes of the old job, with which a plan from a file is carried out, and the new version of Kryo."""
    return replace(types, kryo=kryo)


def _parse_state(entry: Any) -> _WrittenState:
    """Parse the entry of a state in a plan.

    Raises
    ------
    OptionError
        The entry is not valid.
    """
    try:
        access = entry.get("last_access_ms")
        choices = Choices(
            sources={str(k): str(v) for k, v in entry.get("from", {}).items()},
            fills=dict(entry.get("fills", {})),
            constants={str(p): {str(a): str(b) for a, b in n.items()} for p, n in entry.get("constants", {}).items()},
            accept=frozenset(
                (str(s["path"]), str(s["change"])) for s in entry.get("steps", ()) if s.get("accept") is True
            ),
            last_access_ms=None if access is None else int(access),
        )
        scope: Literal["keyed", "operator"] = "operator" if entry["scope"] == "operator" else "keyed"
        target = base64.b64decode(entry["target"], validate=True)
        columns = entry.get("columns", {})
        return _WrittenState(
            uid=entry["uid"],
            state=entry["state"],
            scope=scope,
            target=target,
            choices=choices,
            names=_row_names(columns.get("before", {})),
            new_names=_row_names(columns.get("after", {})),
        )
    except (AttributeError, KeyError, TypeError, ValueError, binascii.Error) as e:
        raise OptionError(
            f"not a valid state of a migration plan: {e!r}",
            hint=_AGAIN,
        ) from e


def _row_names(entry: Mapping[str, Any]) -> RowNames:
    return tuple((str(path), tuple(map(str, names))) for path, names in entry.items())


def read_plan(record: Mapping[str, Any], inventory: Inventory) -> MigrationPlan:
    """Read a plan for a snapshot from a JSON object.

    Raises
    ------
    OptionError
        The object is not a plan.
    UnknownNameError
        The snapshot does not have an operator or a state of the plan.
    """
    if not isinstance(record, Mapping) or record.get("version") != 1 or not isinstance(record.get("states"), list):
        raise OptionError("not a migration plan", hint="write one with statetool check A B --write-plan FILE")
    kryo = record.get("kryo")
    states = []
    refused = [str(text) for text in record.get("refused", ())]
    for entry in record["states"]:
        written = _parse_state(entry)
        if names := entry.get("classes"):
            refused.append(f"{written.uid}.{written.state}: {_CLASSES} ({', '.join(map(str, names))}): {_WITH_JOB}")
            continue
        operator = inventory.operator(written.uid)
        metas = (
            {n: m for n, (_, m) in operator.keyed_states.items()}
            if written.scope == "keyed"
            else operator.operator_states
        )
        if written.state not in metas:
            raise UnknownNameError(
                f"operator {operator.label.display!r} has no {written.scope} state {written.state!r}",
                hint=suggest(written.state, metas),
            )
        conversion = TypeConversion(
            before=meta_bytes(metas[written.state]),
            before_types=operator.types,
            after=written.target,
            types=_types_of_plan(operator.types, kryo),
            choices=written.choices,
            names=written.names,
            new_names=written.new_names,
        )
        differs = list(refusals_of_state(f"{operator.label}.{written.state}", metas[written.state], conversion.meta))
        refused += [text for text in differs if text not in refused]
        if not differs:
            states.append(migration_of(operator.label, written.scope, conversion))
    version = int(record.get("metadata_version", inventory.metadata.version))
    operators = tuple(_read_operator(entry, inventory) for entry in record.get("operators", ()))
    return MigrationPlan(states=tuple(states), metadata_version=version, refused=tuple(refused), operators=operators)
