"""Restore sources: readers and enumerators read the splits and the state that the old connector wrote.

Follows ``SourceCoordinator.resetToCheckpoint``, ``SourceOperator`` and the serializers of each connector. All readers keep bytes with a version
in the state ``SourceReaderState``; neither they nor the coordinator name the connector. The table of the versions that each release writes
is in ``rules.tsv``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from statetool.compatibility.connector_versions import ignores_split_version
from statetool.compatibility.restore import Pair, Restore
from statetool.compatibility.step_verdicts import Assumption
from statetool.compatibility.steps.step import Result, Step, guarded, is_unknown, loses, may_change, per_pair, refuses
from statetool.compatibility.stream_code import changed_connectors, check_connectors, check_start
from statetool.compatibility.verdicts import NEW, A, Remedy
from statetool.compatibility.versioned_serializers import check_own_serializers
from statetool.connectors.checks import check_source
from statetool.connectors.connector import SplitConnector
from statetool.connectors.layouts.hybrid import HybridSplit
from statetool.connectors.model import SplitPosition
from statetool.connectors.sources import READER_STATE, Source, source_of
from statetool.errors import NO_FINDING, StatetoolError, several
from statetool.snapshot.operator import OperatorInventory
from statetool.types.operators import describe_operators

_SHOWN: Final = 5


def _has_source(operator: OperatorInventory) -> bool:
    return READER_STATE in operator.listed_elements or operator.state.coordinator is not None


def _is_source(operator: OperatorInventory) -> bool:
    """Return True for an operator with splits, or with the positions of a source from before FLIP-27."""
    try:
        return _has_source(operator) or (bool(operator.listed_elements) and source_of(operator) is not None)
    except NO_FINDING:
        raise
    except StatetoolError:
        return True  # What cannot be read may be a source.


def _irrelevant(restore: Restore) -> str:
    if any(map(_is_source, restore.old.operators.values())):
        return ""
    # The code of both jobs names its connectors, also those of sinks.
    stored = any(o.listed_elements for o in restore.old.operators.values()) and restore.job.classes is not None
    return "" if stored else "no operator is a source with positions"


def _new_start(old: OperatorInventory) -> Remedy:
    return Remedy(
        "Give the new source another uid, and leave out the state of the old one: the new source begins at its start option.",
        ("drop", A, NEW, "--uid", str(old.label)),
    )


def _connector(restore: Restore, pair: Pair) -> Iterator[Result]:
    """C1 to C3: another connector, or an older release of it, does not read the bytes."""
    if pair.new is None or not restore.has_snapshot or not (_has_source(pair.old) and _has_source(pair.new)):
        return
    old, new = source_of(pair.old), source_of(pair.new)
    if old is None or new is None or old.given is None or new.given is None:
        return
    if not old.given.held and old.given.enumerator is None:
        return
    names, new_names = _names(old), _names(new)
    if names and new_names and not names & new_names:
        text = f"The source is {' or '.join(sorted(new_names))} in the new job, and the snapshot has splits of {' or '.join(sorted(names))}: Flink fails, or takes the bytes for other positions."
        yield refuses("C1", text, _new_start(pair.old), pair.old)
    elif not new_names or not names:
        if names and not new_names and (new.given.held or new.given.enumerator):
            text = f"The snapshot has splits of {' or '.join(sorted(names))}, which does not read the state of the source in the new job: that is another connector"
            if any(uid == pair.old.uid for uid, *_ in changed_connectors(restore)):
                text = f"{text}, as the code of both jobs says: Flink fails, or takes the bytes for other positions."
                yield refuses("C1", text, _new_start(pair.old), pair.old)
                return
            text = f"{text}, or a newer release."
            yield is_unknown("C1", text, "Restore a copy of the job from this snapshot to find out.", pair.old)
        elif _differs(old, new):
            text = "No connector reads the splits of this source, and their versions differ from those in the new job."
            yield is_unknown("C1", text, "Restore a copy of the job from this snapshot to find out.", pair.old)
    elif len(new_names) > 1 and not new.given.held:
        text = f"The snapshot of the new job has no split of this source, so whether it is still {' or '.join(sorted(names))} is unknown."
        yield is_unknown("C1", text, "Take the savepoint of the new job after it has read from the source.", pair.old)
    else:
        yield from _versions(old, new, pair)


def _names(source: Source) -> frozenset[str]:
    if source.connector is not None:
        return frozenset({source.connector.name})
    return frozenset(source.candidates)


def _differs(old: Source, new: Source) -> bool:
    assert old.given is not None
    assert new.given is not None
    if old.given.enumerator_version != new.given.enumerator_version:
        return True
    return bool(new.given.held) and old.given.split_versions != new.given.split_versions


def _versions(old: Source, new: Source, pair: Pair) -> Iterator[Result]:
    assert old.given is not None
    assert new.given is not None
    before, after = old.given.enumerator_version, new.given.enumerator_version
    newer = []
    if before is not None and after is not None and before > after:
        newer.append(f"enumerator state of version {before} (the new job writes {after})")
    splits, new_splits = old.given.split_versions, new.given.split_versions
    if splits and new_splits and max(splits) > max(new_splits) and not ignores_split_version(old.name):
        newer.append(f"splits of version {max(splits)} (the new job writes {max(new_splits)})")
    if newer:
        text = f"The snapshot has {' and '.join(newer)} of {old.name}: an older release of the connector refuses them."
        remedy = Remedy("Use the release of the connector that wrote the snapshot, or a newer one.", is_final=True)
        yield refuses("C2", text, remedy, pair.old)


def _splits_once(restore: Restore, pair: Pair) -> Iterator[Result]:
    """C16, C17: readers and enumerator disagree, as ``statetool sources check`` says."""
    source = source_of(pair.old) if _has_source(pair.old) else None
    found = [] if source is None else [c for c in check_source(source) if c.is_problem and not c.is_unknown]
    if found:
        splits = ", ".join(dict.fromkeys(f"{c.split_id}: {c.message}" for c in found[:_SHOWN]))
        if (
            source is not None
            and source.name == "dynamic-kafka-source"
            and any(c.check == "assigned_held_by_none" for c in found)
        ):
            text = f"No reader has some partitions that the enumerator has assigned ({splits}): the restored job does not read them (FLINK-40469)."
            yield loses(
                "C17",
                text,
                Remedy("Add the splits.", ("sources", "add", A, NEW, "--uid", str(pair.old.label))),
                pair.old,
            )
            return
        text = f"The readers and the enumerator of the source disagree about {several(len(found), 'split')} ({splits})."
        yield may_change("C16", text, Remedy("Look at all of them.", ("sources", "check", A)), pair.old)


def _topics(restore: Restore, pair: Pair) -> Iterator[Result]:
    """C5: splits of topics that the job does not subscribe to any more are read on (FLINK-34089)."""
    if pair.new is None or not restore.has_snapshot or not (_has_source(pair.old) and _has_source(pair.new)):
        return
    old, new = source_of(pair.old), source_of(pair.new)
    if old is None or new is None or old.name != new.name or old.name != "kafka-source":
        return
    before, after = _places(old), _places(new)
    gone = sorted(before - after)
    if after and gone:
        shown = ", ".join(gone[:_SHOWN]) + (", ..." if len(gone) > _SHOWN else "")
        text = f"The snapshot has splits of {shown}, which the new job's savepoint does not have: KafkaSource reads them on, also if the job does not subscribe to them any more (FLINK-34089)."
        remedy = Remedy("If they are not wanted, remove the splits: statetool sources remove.")
        yield may_change("C5", text, remedy, pair.old)


def _places(source: Source) -> set[str]:
    return {place.source for place in _positions(source).values() if place.source}


def _positions(source: Source) -> dict[str, SplitPosition]:
    """Return the positions of the splits in readers and enumerator, by their ids."""
    connector = source.connector
    if not isinstance(connector, SplitConnector):
        return {}
    known = () if source.state.enumerator is None else source.state.enumerator.splits
    splits = [*(h.split for h in source.state.held if h.split is not None), *(k.split for k in known)]
    return {split.split_id: connector.place(split) for split in splits}


def _ends(restore: Restore, pair: Pair) -> Iterator[Result]:
    """C7: splits of the snapshot keep the end at which they stop, whatever the new job says."""
    if pair.new is None or not restore.has_snapshot or not (_has_source(pair.old) and _has_source(pair.new)):
        return
    old, new = source_of(pair.old), source_of(pair.new)
    if old is None or new is None or old.name != new.name:
        return
    before, after = _positions(old), _positions(new)
    stops = {i: p.stop for i, p in before.items()}
    changed = [i for i in stops if i in after and stops[i] != after[i].stop and None in (stops[i], after[i].stop)]
    if changed:
        first = changed[0]
        kept = f"stops at {stops[first]}" if stops[first] is not None else "has no end"
        text = f"The snapshot has {several(len(changed), 'split')} that {'ends' if stops[first] is not None else 'do not end'} otherwise than in the new job: {first} {kept}, and keeps that after the restore."
        yield may_change("C7", text, "Remove the splits, or keep the end of the source as it was.", pair.old)


def _hybrid(restore: Restore, pair: Pair) -> Iterator[Result]:
    """C12: HybridSource finds the source of a split by its place in the list of sources (``HybridSourceSplit``)."""
    if pair.new is None or not restore.has_snapshot or not (_has_source(pair.old) and _has_source(pair.new)):
        return
    old, new = source_of(pair.old), source_of(pair.new)
    if old is None or new is None or not old.name == new.name == "hybrid-source":
        return
    before, after = _inner_sources(old), _inner_sources(new)
    for index in sorted(before.keys() & after.keys()):
        if before[index].isdisjoint(after[index]):
            text = f"Source {index} of the hybrid source is {' or '.join(sorted(after[index]))} in the new job, and the snapshot has splits of {' or '.join(sorted(before[index]))}: Flink fails, or takes the bytes for other positions."
            yield refuses("C12", text, _new_start(pair.old), pair.old)
            return


def _inner_sources(source: Source) -> dict[int, set[str]]:
    """Return the connectors inside of a hybrid source by their place in its list, as far as their splits tell."""
    found: dict[int, set[str]] = {}
    known = () if source.state.enumerator is None else source.state.enumerator.splits
    for split in (*(h.split for h in source.state.held), *(k.split for k in known)):
        if isinstance(split, HybridSplit) and split.connector is not None:
            found.setdefault(split.source_index, set()).add(split.connector)
    return found


def _own_serializers(restore: Restore, pair: Pair) -> Iterator[Result]:
    """C19: splits and enumerators that only classes of the job read."""
    source = source_of(pair.old)
    if not _has_source(pair.old) or source is None or _names(source):
        return
    if source.given is not None and not source.given.held and source.given.enumerator is None:
        return
    yield from check_own_serializers(restore, "C19", "the splits and the enumerator", pair.old)


def _outside(restore: Restore) -> Iterator[Result]:
    """C9: whether the topics, offsets, logs and files still exist is not in the snapshot."""
    sources = [str(p.old.label) for p in restore.pairs if _is_source(p.old)]
    if sources:
        text = f"what {describe_operators(sources)} reads still exists at the positions of the snapshot"
        yield Assumption(rule="C9", text=text, option="statetool sources lag")


STEP: Final = Step(
    name="sources",
    title="Sources",
    follows="SourceCoordinator, SourceOperator, and the serializers of each connector",
    irrelevant=_irrelevant,
    checks=(
        per_pair(_connector),
        per_pair(_topics),
        per_pair(_ends),
        per_pair(_hybrid),
        per_pair(_splits_once),
        per_pair(_own_serializers),
        guarded(check_connectors),
        guarded(check_start),
        _outside,
    ),
)
