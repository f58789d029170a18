"""Questions of a run: the states of an operator that depend on classes of the job, with their serializers and a sample of entries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from statetool.compatibility.running.machine import Part, Question
from statetool.compatibility.running.samples import Sample, element_sample, keyed_sample
from statetool.errors import NO_FINDING, StatetoolError, UnknownSerializerError
from statetool.formats.state_meta import StateMetaInfo
from statetool.serializers.avro.serializer import AvroSerializer
from statetool.serializers.core.base import Serializer, all_parts
from statetool.serializers.core.opaque import OpaqueSerializer, UnderivedSerializer
from statetool.serializers.equal_types import snapshot_bytes
from statetool.serializers.kryo.serializer import KryoSerializer
from statetool.serializers.libraries.flinkx.case_class import FlinkxCaseClassSerializer
from statetool.serializers.messages import DeclaredMessageSerializer
from statetool.serializers.runtime import TtlSerializer, unwrap
from statetool.serializers.typeutils.enums import EnumSerializer
from statetool.serializers.typeutils.pojo import PojoSerializer
from statetool.serializers.typeutils.tuples import CaseClassSerializer
from statetool.snapshot.operator import OperatorInventory
from statetool.snapshot.state_tables import Scope

if TYPE_CHECKING:
    from statetool.compatibility.states import Job

Place = tuple[Scope, str]
#: Serializers of one part of a state by its role: before and after.
Pairs = Mapping[str, tuple[Serializer, Serializer]]
_KEYED, _ELEMENTS, _BROADCAST = range(3)
#: Serializers whose values depend on classes of the job.
_OF_CLASSES: Final = (
    AvroSerializer, CaseClassSerializer, DeclaredMessageSerializer, EnumSerializer, FlinkxCaseClassSerializer, KryoSerializer, OpaqueSerializer, PojoSerializer,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question about one state. ``sample`` is an error if its entries cannot be found: then only its serializers are compared."""

    place: Place
    pairs: Pairs
    question: Question
    sample: Sample | StatetoolError


def questions(
    old: OperatorInventory, new: OperatorInventory, job: Job, most: int | None, *, is_assumed: bool
) -> Iterator[Asked]:
    """Yield the questions about an operator.

    Parameters
    ----------
    most
        Entries per state; ``None`` for all.
    is_assumed
        No snapshot shows the serializers of the new job: own ones are those of the old job.
    """
    for name, (header, meta) in old.listed_keyed.items():
        successor = new.listed_keyed.get(name)
        pairs = None if successor is None else _keyed_pairs(header.key, meta, successor[0].key, successor[1])
        parts = None if pairs is None else _parts(pairs, is_assumed=is_assumed)
        if pairs is None or parts is None:
            continue
        sample = _sample(keyed_sample, old, name, most)
        question = Question(
            form=_KEYED,
            max_parallelism=old.state.max_parallelism,
            as_objects=job.backend in ("heap", "unknown"),
            as_bytes=job.backend != "heap",
            parts=parts,
            entries=() if isinstance(sample, StatetoolError) else sample.entries,
        )
        yield Asked(place=("keyed", name), pairs=pairs, question=question, sample=sample)
    for name, meta in old.listed_elements.items():
        after = new.listed_elements.get(name)
        pairs = None if after is None else _element_pairs(meta, after)
        parts = None if pairs is None else _parts(pairs, is_assumed=is_assumed)
        if pairs is None or parts is None:
            continue
        sample = _sample(element_sample, old, name, most)
        question = Question(
            form=_BROADCAST if meta.kind == "broadcast" else _ELEMENTS,
            max_parallelism=1,
            # It is read as objects when it is restored.
            as_objects=True,
            as_bytes=False,
            parts=parts,
            entries=() if isinstance(sample, StatetoolError) else sample.entries,
        )
        yield Asked(place=("operator", name), pairs=pairs, question=question, sample=sample)


def _sample(
    read: Callable[[OperatorInventory, str, int | None], Sample],
    operator: OperatorInventory,
    name: str,
    most: int | None,
) -> Sample | StatetoolError:
    try:
        return read(operator, name, most)
    except NO_FINDING:
        raise
    except StatetoolError as error:
        return error


def _keyed_pairs(key: Serializer, meta: StateMetaInfo, new_key: Serializer, new: StateMetaInfo) -> Pairs | None:
    """Return the serializers of a keyed state; ``None`` for timers, for another kind of state, and if a collection has unknown parts."""
    if meta.kind != new.kind or meta.namespace is None or new.namespace is None or meta.kind == "timers":
        return None
    pairs = {"key": (key, new_key), "namespace": (meta.namespace, new.namespace)}
    if meta.kind not in ("list", "map"):
        return {**pairs, "value": (unwrap(meta.value), unwrap(new.value))}
    roles = ("element",) if meta.kind == "list" else ("map key", "value")
    if not len(meta.parts) == len(new.parts) == len(roles):
        return None
    return {**pairs, **dict(zip(roles, zip(meta.parts, new.parts, strict=True), strict=True))}


def _element_pairs(meta: StateMetaInfo, new: StateMetaInfo) -> Pairs | None:
    if meta.kind != new.kind:
        return None
    pairs = {"value": (meta.value, new.value)}
    if meta.kind == "broadcast":
        pairs["map key"] = (meta.serializers["KEY_SERIALIZER"], new.serializers["KEY_SERIALIZER"])
    return pairs


def _parts(pairs: Pairs, *, is_assumed: bool) -> list[Part] | None:
    """Return the parts of a state; ``None`` if none depends on classes of the job, or if the new serializer of one is not known."""
    if not any(isinstance(p, _OF_CLASSES) for p in _all_parts(pairs)):
        return None
    found = []
    for role, (old, new) in pairs.items():
        if isinstance(old, TtlSerializer) != isinstance(new, TtlSerializer):
            return None  # Rules of the release decide it.
        try:
            before = snapshot_bytes(old)
        except UnknownSerializerError:
            return None
        if not any(isinstance(p, UnderivedSerializer) for p in all_parts(new)):
            own = is_assumed and isinstance(old, OpaqueSerializer)
            found.append(Part(role, before, snapshot_bytes(new), compares=is_same_kryo(old, new), is_assumed=own))
        elif name := _extracted_class(old):
            found.append(Part(role, before, name.encode(), is_class=True, compares=is_same_kryo(old, new)))
        else:
            return None
    return found


def is_same_kryo(old: Serializer, new: Serializer) -> bool:
    """Return True unless another Kryo wrote values: that of the new job cannot read them as the old job did."""
    of_kryo = [{p.context.kryo for p in all_parts(s) if isinstance(p, KryoSerializer)} for s in (old, new)]
    return not of_kryo[0] or of_kryo[0] == of_kryo[1]


def _all_parts(pairs: Pairs) -> Iterable[Serializer]:
    return (part for pair in pairs.values() for serializer in pair for part in all_parts(serializer))


def _extracted_class(old: Serializer) -> str:
    """Return the class whose serializer type extraction gives; empty if that needs type arguments too."""
    if isinstance(old, PojoSerializer):
        return old.pojo_class
    if isinstance(old, AvroSerializer):
        return old.runtime_class or ""
    return old.type_class if isinstance(old, KryoSerializer) else ""
