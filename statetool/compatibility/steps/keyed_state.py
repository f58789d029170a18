"""Restore keyed state: the backend reads the stored form, then each state's serializers are compared.

Follows ``StreamTaskStateInitializerImpl``, ``HeapRestoreOperation``, ``RocksDBFullRestoreOperation``, ``RocksDBIncrementalRestoreOperation``,
``ForStKeyedStateBackendBuilder`` and ``RegisteredKeyValueStateBackendMetaInfo``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final

from statetool.analysis.verification.structure import key_groups_of
from statetool.compatibility.backends import database_options, stored_forms
from statetool.compatibility.declared_states import (
    check_declared_states,
    check_fields,
    check_late_states,
    check_times_to_live,
)
from statetool.compatibility.declared_types import resolve_information
from statetool.compatibility.releases import kryo_of, may_be_of_2
from statetool.compatibility.restore import Pair, Restore, hidden_values
from statetool.compatibility.running.results import NOT_RUN
from statetool.compatibility.states import (
    KEEP_KEYS,
    NAME_BACKEND,
    Hidden,
    Job,
    RanStates,
    check_key,
    keyed_verdicts,
    of_error,
    verdict_of,
)
from statetool.compatibility.step_verdicts import Assumption
from statetool.compatibility.steps.step import (
    Found,
    Result,
    StateFound,
    Step,
    guarded,
    is_unknown,
    loses,
    may_change,
    note,
    per_pair,
    refuses,
)
from statetool.compatibility.stream_code import check_choices, check_stream_operators
from statetool.compatibility.traced_states import resolve_traced_key
from statetool.compatibility.verdicts import (
    NEW,
    A,
    B,
    Level,
    Remedy,
    Resolution,
    StateVerdict,
    combine,
    migration_remedy,
)
from statetool.entries.form import Layout
from statetool.errors import UNREAD, CheckpointDeletedError, StatetoolError, several
from statetool.formats.key_groups import range_for
from statetool.formats.state_meta import KEY_VALUE_V2, StateMetaInfo
from statetool.operations.advice.restore_settings import FORST_TIMERS, keeps_timers_on_heap
from statetool.saving.versions import RELEASES
from statetool.serializers.core.base import all_parts
from statetool.serializers.core.opaque import OpaqueSerializer
from statetool.serializers.kryo.serializer import KryoSerializer
from statetool.serializers.runtime import TtlSerializer, unwrap
from statetool.serializers.typeutils.pojo import PojoSerializer
from statetool.snapshot.metadata_tables import operator_row
from statetool.snapshot.operator import OperatorInventory
from statetool.types.flink_calls import difference, key_calls

_CONVERT: Final = Remedy(
    "Convert it to a canonical savepoint, which RocksDB and the heap backend read.", ("convert", A, NEW)
)
_TO_FORST: Final = Remedy(
    "Write it as a native savepoint of ForSt.", ("convert", A, NEW, "--format", "native", "--backend", "forst")
)
_TO_V1: Final = Remedy(
    "Restore it with ForSt, or write it as state that RocksDB and the heap backend restore.",
    ("convert", A, NEW, "--state-api", "v1"),
)
#: The backends that write each native format.
_NATIVE: Final[dict[Layout, str]] = {"database": "RocksDB or ForSt", "full": "RocksDB", "heap": "the heap backend"}
#: State above which its migration at the first access is worth a note.
_MUCH: Final = 1 << 30
#: What Flink's databases have in their options (``RocksDBOperationUtils``).
_COMPARATOR: Final = "leveldb.BytewiseComparator"
_MERGE_OPERATOR: Final = "StringAppendTESTOperator"
#: The first release of RocksDB that Flink 1.x does not have: it has 6.20 at most, Flink 2.x 8.10.
_OF_FLINK_2: Final = 7
#: Checksums of blocks as OPTIONS files name them, which RocksDB 6.20 does not know ("unknown checksum type 4").
_CHECKSUM_OF_FLINK_2: Final = "kXXH3"
#: Options with which a job serializes POJOs otherwise than by default.
_FORCED: Final = {"pipeline.force-kryo": "Kryo", "pipeline.force-avro": "Avro"}
_JVM_OPTIONS: Final = "env.java.opts.all"
#: The first release of ForSt.
_FIRST_FORST: Final = "2.0"
#: The assumption of a check without a snapshot of the new job.
SAME_STATES: Final = Assumption(
    rule="O1",
    text="the new job has the operators and states of this snapshot, with the same uids and types",
    option="B, a savepoint of the new job",
)


def _irrelevant(restore: Restore) -> str:
    keyed = any(s.managed_keyed is not None for o in restore.old.metadata.operators for s in o.subtasks)
    return "" if keyed else "no operator has keyed state"


def keyed_results(
    old: OperatorInventory,
    new: OperatorInventory | None,
    job: Job,
    hidden: tuple[Resolution, Hidden] | None = None,
    ran: RanStates | None = None,
) -> Iterator[Result]:
    """Yield the results of an operator's keyed state. Without ``hidden``, the values that no header describes are read again."""
    ran = ran or {}
    ran_key = ran.get(("keyed", ""), NOT_RUN)
    try:
        yield Found(rule="K1", resolution=_forms(old, new, job), operator=old)
        if old.keyed.key is not None and _is_same_unstored_key(old, new, job):
            text = f"the keys of {old.label.display} have the type that they had: their change log does not store it, and both jars have the same classes"
            yield Assumption(rule="K2", text=text, option="a canonical savepoint instead of this checkpoint")
        elif old.keyed.key is not None:
            resolution = check_key(old.keyed.key, None if new is None else new.keyed.key, job)
            yield Found(rule="K2", resolution=ran_key.settle(resolution), operator=old)
        of_key, of_states = hidden_values(old, new, job) if hidden is None else hidden
        yield Found(rule="K9", resolution=ran_key.apply(of_key), operator=old)
        states = None if new is None or _is_keyed_no_more(old, new) else new.keyed_states
        after = {**old.keyed_states, **(states or {})}
        for verdict in keyed_verdicts(old.keyed_states, states, job, of_states, ran, old.label):
            yield StateFound(
                rule="K4",
                operator=old,
                scope="keyed",
                verdict=_in_forst(verdict, after[verdict.name][1], job),
            )
    except UNREAD as error:
        yield Found(
            rule="S3", resolution=of_error(Level.UNKNOWN, error, "statetool cannot read its keyed state"), operator=old
        )


def _is_same_unstored_key(old: OperatorInventory, new: OperatorInventory | None, job: Job) -> bool:
    """Return True if a snapshot does not say the type of keys, as nothing was materialized below its change log, and both jobs have the same classes."""
    keys = [o.keyed.key for o in (old, new) if o is not None]
    if not any(isinstance(key, OpaqueSerializer) and not key.snapshot for key in keys) or job.classes is None:
        return False
    before, after = job.classes.old.source, job.classes.new.source
    return before is not None and after is not None and before.has_same_classes(after)


def _states(restore: Restore) -> Iterator[Result]:
    """K1 to K5, K9 and S: formats, keys, and each state with its serializers."""
    for pair in restore.pairs:
        # Values that no header describes are read only once for both kinds of state; errors in them are those of this step.
        try:
            hidden = restore.hidden(pair)
        except UNREAD:
            hidden = None
        results = list(keyed_results(pair.old, pair.new, restore.job, hidden, restore.ran(pair)))
        yield from results
        yield from _migrated(restore, pair, results)
    if restore.runner is not None and any(not s.is_whole for s in restore.runner.summary().states):
        text = f"values that were not read are like the {restore.runner.options.sample:,} of each state that were"
        yield Assumption(rule="K4", text=text, option="--sample all")
    if not restore.has_snapshot:
        yield SAME_STATES


def _migrated(restore: Restore, pair: Pair, results: list[Result]) -> Iterator[Result]:
    """Z6: databases migrate all values of a state when the job first asks for it (``RocksDBKeyedStateBackend.migrateStateValues``)."""
    names = [r.verdict.name for r in results if isinstance(r, StateFound) and r.verdict.verdict == "after_migration"]
    if names and restore.job.backend != "heap" and (size := operator_row(pair.old).state_bytes) > _MUCH:
        shown = f"{', '.join(names[:5])}{', ...' if len(names) > 5 else ''}"
        text = f"RocksDB migrates all values of {shown} at the first access, before the job goes on: the operator has {several(size, 'byte')} of state."
        remedy = Remedy("Migrate a copy before the restore.", ("migrate", A, NEW, "--to", B))
        yield note("Z6", text, remedy if restore.has_snapshot else None, pair.old)


def _in_forst(verdict: StateVerdict, meta: StateMetaInfo, job: Job) -> StateVerdict:
    """V2: ForSt of Flink 2.0 to 2.3 migrates no values of asynchronous state (``ForStKeyedStateBackend.updateRestoredStateMetaInfo``)."""
    if job.backend != "forst" or verdict.verdict != "after_migration" or meta.backend_type != KEY_VALUE_V2:
        return verdict
    causes = [c for c in verdict.causes if c.level == Level.AFTER_MIGRATION]
    migrated = Resolution(Level.AFTER_MIGRATION, tuple(causes), verdict.warnings)
    text = "ForSt does not migrate the values of asynchronous state: State migration not support yet."
    remedy = migration_remedy("Write a copy of the snapshot in which the values have the new type.")
    if RELEASES.keys() & job.releases:
        return verdict_of(verdict.name, migrated.as_refused(remedy, text))
    unknown = Resolution.because(
        Level.UNKNOWN, text.replace("ForSt", "ForSt of Flink 2.0 to 2.3", 1), "Name the release with --flink."
    )
    return verdict_of(verdict.name, combine([migrated, unknown]))


def _is_keyed_no_more(old: OperatorInventory, new: OperatorInventory) -> bool:
    return bool(old.listed_keyed) and not new.keyed.managed and "keyed" not in new.unread


def _not_keyed(restore: Restore, pair: Pair) -> Iterator[Result]:
    """K8: an operator without a keyed backend ignores its keyed handles (``StreamTaskStateInitializerImpl.keyedStatedBackend``)."""
    old, new = pair.old, pair.new
    if new is None or not _is_keyed_no_more(old, new):
        return
    states = [n for n, (_, meta) in old.listed_keyed.items() if meta.kind != "timers"]
    shown = f"{several(len(states), 'state')} ({', '.join(states[:5])}{', ...' if len(states) > 5 else ''})"
    text = (
        f"The operator has keyed state, and the savepoint of the new job has none of it. Unless the new operator is keyed and registers its"
        f" states later, Flink drops its {shown} without a message; the next checkpoint does not have them."
    )
    remedy = Remedy(
        "Move its state to the operator that has the keys in the new job, with statetool move-state or graft."
    )
    yield loses("K8", text, remedy, old)


def _keys_of_code(restore: Restore, pair: Pair) -> Iterator[Result]:
    """K2 without a snapshot of the new job: its code gives the keys of an operator another type."""
    if (traced := resolve_traced_key(restore, pair)) is not None:
        yield Found(rule="K2", resolution=traced.as_refused(KEEP_KEYS).inside("key"), operator=pair.old)
        return
    classes, key, uid = restore.job.classes, pair.old.keyed.key, pair.old.uid
    if restore.has_snapshot or key is None or not uid or classes is None:
        return
    old, new = classes.old, classes.new
    if old.source is None or new.source is None:
        return
    before, after = (types.source.key_types(types.kryo).get(uid) for types in (old, new) if types.source is not None)
    if before is None or after is None or before == after:
        return
    was, now = (resolve_information((key,), (kind,), types) for kind, types in ((before, old), (after, new)))
    # If the code of the old job is read correctly, it gives the type that the snapshot has.
    if was is not None and was.level == Level.AS_IS and now is not None and now.level == Level.INCOMPATIBLE:
        yield Found(rule="K2", resolution=now.as_refused(KEEP_KEYS).inside("key"), operator=pair.old)


def _declared(restore: Restore, pair: Pair) -> Iterator[Result]:
    """K3, K4, K6, K8, Z4 without a snapshot of the new job: its code declares other states than the snapshot has."""
    yield from check_declared_states(restore, pair, keyed=True)
    yield from check_choices(restore, pair, keyed=True)


def _key_selectors(restore: Restore) -> Iterator[Result]:
    """K11: keys of another selector are of the same type, and are not found."""
    classes = restore.job.classes
    if classes is None or classes.old.source is None or classes.new.source is None:
        return
    before, after = (key_calls((*s.flink_calls(), *s.own_calls())) for s in (classes.old.source, classes.new.source))
    if Counter(map(str, before)) - Counter(map(str, after)):
        text = f"The code that selects keys changed ({difference(before, after)}). Where the keys of an operator change, its state is not found."
        yield may_change("K11", text, "Compare the key selectors of both jobs.")


def _forst(restore: Restore, pair: Pair) -> Iterator[Result]:
    """V1, V4: by default, ForSt restores only the files of its own checkpoints and native savepoints (FLINK-39949)."""
    old, config = pair.old, restore.options.config
    layouts = _layouts(old) if restore.job.backend == "forst" else set()
    others = layouts - {"database"}
    if layouts == {"database"}:
        yield Assumption(
            rule="V4",
            text=f"the files of {old.label.display} were written by ForSt, or by statetool for it, not by RocksDB",
            option="the configuration of the job that wrote the snapshot",
        )
    elif others and restore.releases and not RELEASES.keys() & restore.releases:
        text = "The development branch of this Flink restores snapshots with keyed state of other backends in ForSt (FLINK-39949), which no test has tried."
        yield is_unknown("V1", text, _TO_FORST, old)
    elif others and (config is None or not keeps_timers_on_heap(config, FORST_TIMERS)):
        text = "ForSt of Flink 2.0 to 2.3 does not restore canonical savepoints or snapshots of the heap backend: Not support restoring yet for ForStStateBackend."
        yield (refuses if restore.releases else is_unknown)("V1", text, _TO_FORST, old)
    elif "heap" in others:
        text = "With its timers on the heap, ForSt of Flink 2.0 to 2.3 takes the state of the heap backend for that of a canonical savepoint, and fails."
        yield (refuses if restore.releases else is_unknown)("V1", text, _TO_FORST, old)
    elif others and not restore.releases:
        text = "the release of the new job is Flink 2.0 to 2.3, whose ForSt restores canonical savepoints if its timers are on the heap"
        yield Assumption(rule="V1", text=text, option="--flink")


def _asynchronous(restore: Restore, pair: Pair) -> Iterator[Result]:
    """V3: asynchronous state (``KEY_VALUE_V2``) is state of ForSt; heap and RocksDB refuse it (``HeapMetaInfoRestoreOperation``)."""
    states = {n: m for n, (_, m) in pair.old.listed_keyed.items() if m.backend_type == KEY_VALUE_V2}
    after = {} if pair.new is None else pair.new.listed_keyed
    synchronous = {n: m for n, m in states.items() if n in after and after[n][1].backend_type != KEY_VALUE_V2}
    backend = restore.job.backend
    if not states or (backend == "forst" and not synchronous):
        return
    text = f"The operator has {_listed(states)} of asynchronous state"
    if backend == "forst":
        text = f"{text}, and the new job uses {_listed(synchronous)} synchronously."
        remedy = Remedy("Write it as synchronous state.", (*_TO_FORST.command, "--state-api", "v1"))
        yield from _other_api(restore, "V3", text, synchronous, remedy, pair.old)
    elif restore.job.may_be_forst and synchronous:
        text = f"{text}, the new job uses it synchronously, and its backend is RocksDB, which refuses it, or ForSt."
        yield is_unknown("V3", text, NAME_BACKEND, pair.old)
    elif synchronous or backend == "heap" or (backend == "rocksdb" and not restore.has_snapshot):
        text = f"{text}, which only ForSt restores: Flink fails with Unexpected state type."
        yield refuses("V3", text, _TO_V1, pair.old)
    elif not restore.has_snapshot:
        text = f"{text}, which only ForSt restores, and the backend of the new job is not known to be ForSt."
        yield is_unknown("V3", text, Remedy("Name the backend with --backend.", is_final=True), pair.old)


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    return f"{several(len(names), 'state')} ({', '.join(names[:5])}{', ...' if len(names) > 5 else ''})"


def _other_api(
    restore: Restore, rule: str, text: str, states: Mapping[str, StateMetaInfo], remedy: Remedy, old: OperatorInventory
) -> Iterator[Result]:
    """Yield whether ForSt restores states of the other API: 2.0 casts their descriptions, later releases compare their serializers (``ForStKeyedStateBackend.tryRegisterKvStateInformation``)."""
    releases = restore.releases
    living = [n for n, m in states.items() if any(isinstance(unwrap(p), TtlSerializer) for p in (m.value, *m.parts))]
    if any(not stored.database for stored in stored_forms(old)):
        text = f"{text} From canonical savepoints, ForSt restores no state of the other API."
        yield refuses(rule, text, remedy, old)
    elif set(releases) == {_FIRST_FORST}:
        text = f"{text} ForSt of Flink {_FIRST_FORST} refuses state of the other API."
        yield refuses(rule, text, remedy, old)
    elif living:
        text = f"{text} ForSt refuses state of the other API that has a time to live: {', '.join(living[:5])}."
        yield refuses(rule, text, remedy, old)
    elif not releases or _FIRST_FORST in releases:
        text = f"{text} ForSt of Flink {_FIRST_FORST} refuses state of the other API, and later releases restore it."
        yield is_unknown(rule, text, "Name the release with --flink.", old)


def _foreign_key_groups(restore: Restore, pair: Pair) -> Iterator[Result]:
    """M14: with equal parallelism, handles are assigned by index, and key groups of other subtasks are skipped (``HeapRestoreOperation``)."""
    state = pair.old.state
    if restore.parallelism_of(pair) not in (None, state.parallelism):
        return
    for subtask in state.subtasks:
        groups = key_groups_of(subtask.managed_keyed)
        if groups is not None and groups != range_for(subtask.index, state.parallelism, state.max_parallelism):
            text = f"Subtask {subtask.index} has other key groups than Flink gives it: their state is skipped without a message."
            number = f"{pair.old.label}={state.max_parallelism}"
            remedy = Remedy("Write the state of each key group to its subtask.", ("rescale", A, NEW, "--uid", number))
            yield loses("M14", text, remedy, pair.old)
            return


def _generic_types(restore: Restore, pair: Pair) -> Iterator[Result]:
    """S4: a job that forbids generic types is not built if it has one."""
    states = {} if pair.new is None else {n: m for n, (_, m) in pair.new.listed_keyed.items()}
    yield from refuse_generic_types(restore, pair, states)


def refuse_generic_types(restore: Restore, pair: Pair, states: Mapping[str, StateMetaInfo]) -> Iterator[Result]:
    """Yield that a job which forbids generic types is not built if the new job has one in some states (``GenericTypeInfo``)."""
    config = restore.options.config
    if config is None or config.flag("pipeline.generic-types", default=True):
        return
    found = sorted(
        {
            p.type_name
            for m in states.values()
            for s in m.serializers.values()
            for p in all_parts(s)
            if isinstance(p, KryoSerializer)
        }
    )
    if found:
        text = f"pipeline.generic-types is false, and the state has {', '.join(found[:3])}: the job is not built."
        yield refuses(
            "S4", text, Remedy("Give these types a serializer, or remove the option.", is_final=True), pair.old
        )


def _layouts(operator: OperatorInventory) -> set[Layout]:
    """Return the layouts of an operator's keyed state. Files of the heap backend are alike, so one of them is read."""
    found: set[Layout] = set()
    for stored in stored_forms(operator):
        is_known = stored.canonical or stored.database
        if is_known or not found & {"heap", "full"}:
            found.add(stored.layout())
    return found


def _forms(old: OperatorInventory, new: OperatorInventory | None, job: Job) -> Resolution:
    """Check whether the new backend reads the stored format: only canonical savepoints can switch backends."""
    for layout in sorted(_layouts(old)):
        if job.backend == "forst":
            return Resolution(Level.AS_IS)  # V1
        form = _NATIVE.get(layout, "")
        if not form:
            continue
        if job.backend == "unknown":
            if new is not None:
                shows = "the jar" if new.types.renewed else "the snapshot"
                text = f"The keyed state has the native format of {form}, and {shows} of the new job does not show its backend."
                return Resolution.because(Level.UNKNOWN, text, NAME_BACKEND)
        elif (layout == "heap") != (job.backend == "heap"):
            return Resolution.because(
                Level.INCOMPATIBLE if layout == "database" else Level.UNKNOWN,
                f"The keyed state has the native format of {form}, and the job uses the {job.backend} backend.",
                _CONVERT,
            )
    return Resolution(Level.AS_IS)


def _backend(restore: Restore) -> Iterator[Result]:
    """K1, V1, V4: what is taken for granted of a backend that is not known."""
    job, config = restore.job, restore.options.config
    forms: set[Layout] = set()
    for pair in restore.pairs:
        with suppress(*UNREAD):
            if not forms & _NATIVE.keys():
                forms.update(_layouts(pair.old))
    native = [_NATIVE[form] for form in ("database", "full", "heap") if form in forms]
    if job.backend == "unknown" and native and restore.new is None:
        form = native[0]
        if config is None:
            text = f"the new job has the state backend that wrote the keyed state: {form}"
            yield Assumption(rule="K1", text=text, option="--backend")
        else:
            text = f"The keyed state has the native format of {form}, and the configuration does not set state.backend.type."
            yield is_unknown("K1", text, NAME_BACKEND)
    elif job.may_be_forst and "database" in forms:
        text = "the new job has the state backend that wrote the keyed state: RocksDB or ForSt, which store it alike"
        yield Assumption(rule="V4", text=text, option="--backend")
    elif (
        (job.may_be_forst or (job.backend == "unknown" and config is None))
        and may_be_of_2(job.releases)
        and "canonical" in forms
    ):
        text = "the state backend of the new job is not ForSt, which restores only its own checkpoints and native savepoints"
        yield Assumption(rule="V1", text=text, option="--backend")


def _canonical_later(restore: Restore) -> Iterator[Result]:
    """V5: ForSt takes no canonical savepoint (``ForStSyncKeyedStateBackend.savepoint``)."""
    if restore.job.backend == "forst":
        text = "ForSt takes no canonical savepoints, only native ones: Flink fails with Canonical savepoints are not supported by ForSt State Backend."
        yield note("V5", text, "Take savepoints of the new job with flink savepoint --type native.")


def _becomes_asynchronous(restore: Restore, pair: Pair) -> Iterator[Result]:
    """V6: state of synchronous operators that the new job uses asynchronously (``enableAsyncState``, ``table.exec.async-state.enabled``)."""
    after = {} if pair.new is None or not restore.has_snapshot else pair.new.listed_keyed
    states = {
        n: m
        for n, (_, m) in pair.old.listed_keyed.items()
        if n in after and m.backend_type != KEY_VALUE_V2 and after[n][1].backend_type == KEY_VALUE_V2
    }
    if states:
        text = f"The new job uses {_listed(states)} asynchronously, which the snapshot has for synchronous operators."
        remedy = Remedy("Write it as asynchronous state.", (*_TO_FORST.command, "--state-api", "v2"))
        yield from _other_api(restore, "V6", text, states, remedy, pair.old)


def _options(restore: Restore) -> Iterator[Result]:
    """K12, K13: the library of the new job opens the files of a database (``RocksDBIncrementalRestoreOperation``)."""
    try:
        options = database_options(p.old for p in restore.pairs)
    except CheckpointDeletedError:
        raise
    except StatetoolError:
        text = "RocksDB of the new job opens the databases: their OPTIONS file cannot be read from here"
        yield Assumption(rule="K12", text=text, option="access to the files of the snapshot, or --rebase")
        return
    version = next(iter(options.get("rocksdb_version", ())), "")
    number = version.partition(".")[0]
    oldest = next(iter(restore.releases), "")
    if number.isdecimal() and int(number) >= _OF_FLINK_2 and oldest.startswith("1."):
        text = f"The files were written by RocksDB {version}, and Flink {oldest} has 6.20 or older"
        if not may_be_of_2(restore.releases) and _CHECKSUM_OF_FLINK_2 in options.get("checksum", ()):
            yield refuses("K12", f"{text}, which does not know their checksums.", _CONVERT)
        else:
            yield is_unknown("K12", f"{text}. Whether it reads them is unknown.", _CONVERT)
    others = [v for v in options.get("comparator", ()) if v != _COMPARATOR]
    others += [v for v in options.get("merge_operator", ()) if _MERGE_OPERATOR not in v and v != "nullptr"]
    if others:
        text = f"The databases were written with options that Flink does not set ({', '.join(sorted(others)[:3])}): RocksDB of the new job needs the same ones to open them."
        yield note("K13", text, _CONVERT)


def _settings_of_types(restore: Restore, pair: Pair) -> Iterator[Result]:
    """S5: the configuration gives POJOs another serializer than the states have (``PojoTypeInfo.createSerializer``)."""
    config, known = restore.options.config, pair.new if restore.has_snapshot else pair.old
    forced = [k for k in _FORCED if config is not None and config.flag(k)]
    if config is None or known is None or not forced:
        return
    names = _types_of(known, PojoSerializer)
    if names:
        whose = "the savepoint of the new job has" if restore.has_snapshot else "the snapshot has"
        text = f"The configuration sets {forced[0]}, with which {_FORCED[forced[0]]} serializes POJOs, and {whose} Flink's serializer of {', '.join(names[:3])}: they are not of the same configuration."
        yield is_unknown("S5", text, "Check with the configuration of the run that wrote the savepoint.", pair.old)


def _types_of(operator: OperatorInventory, kind: type[KryoSerializer | PojoSerializer]) -> list[str]:
    """Return the types in the state of an operator that a serializer writes."""
    metas = (*(m for _, m in operator.listed_keyed.values()), *operator.listed_elements.values())
    key = [] if operator.keyed.key is None else [operator.keyed.key]
    parts = (p for s in (*key, *(s for m in metas for s in m.serializers.values())) for p in all_parts(s))
    return sorted(
        {p.type_class if isinstance(p, KryoSerializer) else p.type_name for p in parts if isinstance(p, kind)}
    )


def _opened_packages(restore: Restore) -> Iterator[Result]:
    """S7: from Java 17 on, Kryo of Flink 1.x starts only with ``--add-opens``, and that of 2.x needs it for fields of the JDK's classes."""
    config = restore.options.config
    if config is None or "--add-opens" in (config.text(_JVM_OPTIONS) or ""):
        return
    found = sorted({n for p in restore.pairs for n in _types_of(p.old, KryoSerializer)})
    of_jdk = [n for n in found if n.startswith("java.")]
    kryo = kryo_of(restore.releases)
    first = "Kryo of Flink 1.x does not start (its Chill serializers read private fields of the JDK's classes)"
    second = f"Kryo may not read the private fields of {', '.join(of_jdk[:3])}"
    written = of_jdk if kryo == 5 else found
    if kryo is None and of_jdk:
        why = f"{first}, and in Flink 2.x, {second}"
    else:
        why = second if kryo == 5 else first
    if written:
        text = f"Kryo writes {', '.join(written[:3])}, and {_JVM_OPTIONS} of the configuration has no --add-opens: from Java 17 on, {why}."
        yield note("S7", text, "Keep the options of env.java.opts.all that Flink's own config.yaml has.")


def _mixed_handles(restore: Restore, pair: Pair) -> Iterator[Result]:
    """M13: the first handle of an operator decides how all are read (``RocksDBKeyedStateBackendBuilder``)."""
    forms = {stored.database for stored in stored_forms(pair.old)}
    if len(forms) > 1:
        text = "Some subtasks have the native format of RocksDB or ForSt, others another one: Flink reads all as the first one."
        yield refuses("M13", text, _TO_FORST if restore.job.backend == "forst" else _CONVERT, pair.old)


STEP: Final = Step(
    name="keyed_state",
    title="Keyed state",
    follows="StreamTaskStateInitializerImpl, HeapRestoreOperation, RocksDB*RestoreOperation, ForStKeyedStateBackendBuilder",
    irrelevant=_irrelevant,
    checks=(
        _states,
        guarded(_backend),
        per_pair(_not_keyed),
        per_pair(_declared),
        per_pair(check_stream_operators),
        per_pair(check_fields),
        per_pair(check_times_to_live),
        per_pair(check_late_states),
        per_pair(_keys_of_code),
        guarded(_key_selectors),
        per_pair(_forst),
        per_pair(_asynchronous),
        per_pair(_becomes_asynchronous),
        _canonical_later,
        _options,
        per_pair(_mixed_handles),
        per_pair(_foreign_key_groups),
        per_pair(_generic_types),
        per_pair(_settings_of_types),
        guarded(_opened_packages),
    ),
)
