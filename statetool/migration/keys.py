"""Plan of a change of keys: the new type, what computes new keys, and what becomes of old keys that meet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final, cast

from statetool.errors import OptionError, StatetoolError, UnknownNameError, UnsupportedError, suggest, warn
from statetool.formats.keyed.header import CURRENT_VERSION, KeyedHeader, write_keyed_header
from statetool.java.declaring.flink_types import parse_type
from statetool.java.hashing.formulas import HashFormula, user_classes
from statetool.java.hashing.possible_keys import check_key_type
from statetool.java.hashing.prove import prove_hashes
from statetool.migration.choices import Choices
from statetool.migration.compiling import EXACT, Compiler
from statetool.serializers.core.base import Serializer
from statetool.serializers.equal_types import snapshot_bytes
from statetool.serializers.typeutils.row import RowSerializer
from statetool.snapshot.views import MERGED
from statetool.types.operators import describe_operators

if TYPE_CHECKING:
    import pyarrow as pa

    from statetool.formats.state_meta import StateMetaInfo
    from statetool.kernels.core.arrays import Bytes, Int64s
    from statetool.saving.rekeying.change import KeyChange
    from statetool.saving.rekeying.meeting import Policy
    from statetool.snapshot.inventory import Inventory
    from statetool.snapshot.operator import OperatorInventory
    from statetool.types.declared import TypeContext

KINDS: Final = ("value", "list", "map", "reducing", "aggregating", "timers")
POLICIES: Final = ("error", "merge", "keep-newest")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRequest:
    """Changes of keys as users give them: by uid, by kind of state, or by ``uid.state``."""

    keys: Mapping[str, str] = field(default_factory=dict)
    key_types: Mapping[str, str | Serializer] = field(default_factory=dict)
    on_conflict: Mapping[str, str] = field(default_factory=dict)
    merges: Mapping[str, str] = field(default_factory=dict)
    newest: Mapping[str, str] = field(default_factory=dict)
    hashes: Mapping[str, str] = field(default_factory=dict)

    def check(self) -> None:
        """Refuse unknown kinds and policies, and choices without a change of keys.

        Raises
        ------
        OptionError
        """
        choices = {**self.on_conflict, **self.merges, **self.newest, **self.hashes}
        if choices and not (self.keys or self.key_types):
            raise OptionError(
                "these options are for a change of keys", hint="pass --key or --key-type (keys=, key_types=)"
            )
        for kind, policy in self.on_conflict.items():
            if kind not in KINDS:
                raise OptionError(f"{kind!r} is not a kind of state", hint=f"pass one of {', '.join(KINDS)}")
            if policy not in POLICIES:
                raise OptionError(f"{policy!r} is not a policy", hint=f"pass one of {', '.join(POLICIES)}")
            if policy == "keep-newest" and kind in ("list", "timers"):
                raise OptionError(
                    f"nothing tells which {kind} are the newest", hint=f"pass {kind}=merge or {kind}=error"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyMigration:
    """Change of the keys of one operator.

    Attributes
    ----------
    before, after
        The types, as readable text.
    text
        What computes the new keys, and what changes with them.
    kept
        Other operators with keys of the old type, which stay.
    """

    uid: str
    before: str
    after: str
    text: str
    change: KeyChange
    kept: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class KeyCast:
    """New keys that are the old ones in another type. What the type does not hold exactly is refused."""

    before: bytes
    before_types: TypeContext
    after: bytes
    types: TypeContext

    def make(self, key: Serializer, data: Bytes, start: Int64s, end: Int64s, group: Int64s) -> pa.Array:
        """Return the new key of each old key."""
        from statetool.columns.values import decode_framed

        convert = _compiled(self.before, self.before_types, self.after, self.types)
        return convert(decode_framed(key, data, start, end, EXACT))


@lru_cache(maxsize=64)
def _compiled(
    before: bytes, before_types: TypeContext, after: bytes, types: TypeContext
) -> Callable[[pa.Array], pa.Array]:
    from statetool.saving.streams.keyed import parse_keyed_header

    old, new = parse_keyed_header(before, before_types).key, parse_keyed_header(after, types).key
    return Compiler(Choices()).key(old, new, "key")


def plan_keys(base: Inventory, new_job: Inventory | None, request: KeyRequest) -> tuple[KeyMigration, ...]:
    """Plan the changes of keys.

    Parameters
    ----------
    new_job
        A snapshot of the new job, which has the new type of keys unless the request does.

    Raises
    ------
    OptionError, UnknownNameError
        The request does not fit the operators.
    UnsupportedError
        Keys that cannot be changed.
    """
    request.check()
    uids = dict.fromkeys((*request.keys, *request.key_types))
    operators = {base.operator(uid).state.operator_id: (uid, base.operator(uid)) for uid in uids}
    if len(operators) < len(uids):
        raise OptionError("an operator is given twice, under two names", hint="give it one --key and one --key-type")
    for name in (*request.merges, *request.newest):
        known = [f"{uid}.{s}" for uid, o in operators.values() for s in o.keyed_states]
        if name not in known:
            raise UnknownNameError(f"no keyed state of these operators is called {name!r}", hint=suggest(name, known))
    planned = []
    for operator_id, (uid, operator) in operators.items():
        job = None if new_job is None else {o.state.operator_id: o for o in new_job.operators.values()}.get(operator_id)
        try:
            planned.append(_plan_operator(base, operator, job, request, uid, set(operators)))
        except StatetoolError as error:
            raise error.at(operator=operator.label) from error.__cause__
    return tuple(planned)


def warn_of_kept(keys: tuple[KeyMigration, ...]) -> None:
    """Warn of other operators whose keys stay; for functions that users call."""
    kept = list(dict.fromkeys(uid for one in keys for uid in one.kept))
    if kept:
        warn(
            f"{describe_operators(kept)} {'keeps' if len(kept) == 1 else 'keep'} the old keys: operators that get their records by the same"
            " keyBy, such as those in one chain, need the same change",
            stacklevel=4,
        )


def _plan_operator(
    base: Inventory,
    operator: OperatorInventory,
    job: OperatorInventory | None,
    request: KeyRequest,
    uid: str,
    changed: set[str],
) -> KeyMigration:
    from statetool.saving.rekeying.change import KeyChange
    from statetool.saving.rekeying.makers import key_maker

    header = operator.keyed.joined_header(raw=True)
    if header is None:
        raise OptionError("no keyed state, so no keys", hint="name an operator with keyed state (statetool ls PATH)")
    old = header.key
    _check_old_key(operator, old)
    sql, declared = request.keys.get(uid), request.key_types.get(uid)
    new = None if declared is None else parse_type(declared)
    types = operator.types
    if (
        new is None
        and job is not None
        and job.keyed.key is not None
        and snapshot_bytes(job.keyed.key) != snapshot_bytes(old)
    ):
        new, types = job.keyed.key, job.types
    if sql is not None:
        maker, kind = key_maker(operator, old, sql)
        new = _type_of(kind, old, uid) if new is None else new
    elif new is not None:
        _check_cast(old, new)
    assert new is not None
    check_key_type(new)
    if new.needs_frame:
        raise UnsupportedError(f"keys of type {new.type_name} cannot be written", hint=new.missing_declaration_hint)
    before, after = _header_of(old), _header_of(new)
    cast_keys = KeyCast(before=before, before_types=operator.types, after=after, types=types)
    change = KeyChange(
        before=before,
        before_types=operator.types,
        after=after,
        types=types,
        maker=cast_keys if sql is None else maker,
        formula=_formula(new, (operator, job), types, request.hashes),
        policies=_policies(request, header.states),
        merges=_of_operator(request.merges, uid),
        newest=_of_operator(request.newest, uid),
    )
    _check_expressions(change, header.states)
    text = f"{old.type_name} becomes {new.type_name}{'' if sql is None else f' by {sql}'}, in {_counted(header.states)}"
    kept = tuple(
        o.label
        for o in base.operators.values()
        if o.state.operator_id not in changed
        and o.keyed.key is not None
        and snapshot_bytes(o.keyed.key) == snapshot_bytes(old)
    )
    return KeyMigration(
        uid=operator.label, before=old.type_name, after=new.type_name, text=text, change=change, kept=kept
    )


def _counted(states: tuple[StateMetaInfo, ...]) -> str:
    timers = sum(meta.kind == "timers" for meta in states)
    return f"{len(states) - timers} states" + (f" and {timers} timer services" if timers else "")


def _check_old_key(operator: OperatorInventory, key: Serializer) -> None:
    if key.needs_frame:
        raise UnsupportedError(
            f"keys of type {key.type_name} cannot be taken apart",
            hint="pass the job's jar (--jar) or declare the class (--declare)",
        )
    if operator.types.python or (isinstance(key, RowSerializer) and len(key.nested) == 1):
        raise UnsupportedError(
            "keys of a Python job, which are rows of one field, cannot be changed",
            hint="write the state again with bootstrap_keyed_state and key_type=",
        )


def _check_cast(old: Serializer, new: Serializer) -> None:
    """Refuse a type that cannot hold the old keys."""
    compiler = Compiler(Choices())
    compiler.key(old, new, "key")
    # Values that narrow types do not hold are refused one by one.
    wrong = [
        s for s in compiler.steps if s.change == "impossible" or (s.loses and s.change not in ("narrow", "constants"))
    ]
    if wrong:
        raise UnsupportedError(
            f"keys of type {old.type_name} cannot become {new.type_name}: {'; '.join(f'{s.path}: {s.text}' for s in wrong)}",
            hint='compute the new key with --key UID=SQL (keys=), as in --key \'orders={"id": key.f0, "shop": key.f1}\'',
        )


def _type_of(kind: pa.DataType, old: Serializer, uid: str) -> Serializer:
    """Return the type of new keys that follows from the type of the results of an expression."""
    import pyarrow as pa

    from statetool.columns.infer import infer_type
    from statetool.columns.types import table_column
    from statetool.saving.streams.predicates import OPTIONS

    if kind == table_column(old.logical, OPTIONS).fields("key")[0].type:
        return old
    if (
        pa.types.is_string(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_signed_integer(kind)
        or kind in (pa.float32(), pa.float64())
    ):
        return infer_type(kind)
    possible = "a tuple, a Row, a POJO or RowData" if pa.types.is_struct(kind) else "several types"
    raise OptionError(
        f"the new keys are {kind}, which can be {possible} in Flink",
        hint=f"pass --key-type '{uid}=TYPE', such as ROW<f0 BIGINT> for RowData, or --to JOB, a savepoint of the new job (in Python: "
        "key_types= with a type of statetool.flink)",
    )


def _header_of(key: Serializer) -> bytes:
    return write_keyed_header(KeyedHeader(version=CURRENT_VERSION, compressed=False, key=key, states=(), size_bytes=0))


def _formula(
    key: Serializer,
    proofs: tuple[OperatorInventory | None, ...],
    types: TypeContext,
    hashes: Mapping[str, str],
) -> HashFormula | None:
    """Return the hash function of new keys: the declared one, or the one that stored keys of the same type prove."""
    classes = user_classes(key)
    if not classes:
        return None
    declared = HashFormula.declared(hashes).with_types(classes, types)
    if declared.knows(classes):
        return declared
    for proof in proofs:
        stored = None if proof is None else proof.keyed.key
        if proof is not None and stored is not None and snapshot_bytes(stored) == snapshot_bytes(key):
            proved = prove_hashes(proof.keyed.sources(), key, declared).formula
            if proved is not None:
                return proved
    missing = [name for name in classes if declared.of(name) is None]
    raise OptionError(
        f"the hash code of {', '.join(missing)}, the type of the new keys, is computed by user code",
        hint=f"declare it with --hash '{missing[0]}=Objects.hash(a, b)' (hashes=), or open the snapshot with the job's jar (--jar, jars=)",
    )


def _policies(request: KeyRequest, states: tuple[StateMetaInfo, ...]) -> dict[str, Policy]:
    """Return the policy of each state, by name; none if the user gives none."""
    if not request.on_conflict:
        return {}
    return {
        m.name: "error" if m.name in MERGED else cast("Policy", request.on_conflict.get(m.kind, "error"))
        for m in states
    }


def _of_operator(values: Mapping[str, str], uid: str) -> dict[str, str]:
    return {name.removeprefix(f"{uid}."): sql for name, sql in values.items() if name.startswith(f"{uid}.")}


def _check_expressions(change: KeyChange, states: tuple[StateMetaInfo, ...]) -> None:
    """Refuse expressions that cannot be evaluated, and policies that lack one."""
    from statetool.saving.rekeying.expressions import result_type
    from statetool.saving.rekeying.merging import columns_of, has_stamps

    for meta in states:
        policy = change.policy(meta)
        merges, newest = change.merges.get(meta.name), change.newest.get(meta.name)
        needs_merge = policy == "merge" and meta.kind in ("value", "reducing", "aggregating")
        # Equal keys of maps, which alone would need it, may not occur.
        needs_newest = policy == "keep-newest" and meta.kind != "map" and not has_stamps(meta)
        for given, needed, option, arguments in (
            (merges, needs_merge, "--merge STATE=SQL (merges=), an expression of a and b", ("a", "b")),
            (newest, needs_newest, "--newest STATE=SQL (newest=), an expression of value", ("value",)),
        ):
            if given is not None and policy not in ("merge", "keep-newest"):
                hint = f"pass --on-conflict {meta.kind}=... (on_conflict=)"
                raise OptionError("an expression for a state whose keys must not meet", hint=hint).at(state=meta.name)
            if given is None and needed:
                raise OptionError(f"{policy} needs an expression for this state", hint=f"pass {option}").at(
                    state=meta.name
                )
            if isinstance(given, str):
                try:
                    result_type(columns_of(meta, *arguments), given)
                except StatetoolError as error:
                    raise error.at(state=meta.name) from error.__cause__
