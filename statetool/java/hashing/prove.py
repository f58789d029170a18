"""Proof of key hash formulas: each formula is tested against the key groups of stored keys.

By chance, a wrong formula puts one of ``max parallelism`` keys into its key group. With ``n`` different hash codes, a wrong one of ``c``
tested formulas fits all of them with a probability of at most ``c / max parallelism ** n``. A formula with a higher bound than
:data:`MOST_CHANCE` is refused. Keys outside the sample are checked one by one when they are moved.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, product
from typing import Any, Final

import numpy as np

from statetool.entries.form import EntryRequest, KeyGroupReader
from statetool.entries.selection import key_starts
from statetool.errors import OptionError, StatetoolError, UnsupportedError
from statetool.formats.key_groups import key_group_for
from statetool.formats.keyed.distinct import distinct
from statetool.java.hashing.candidates import Polynomials, few_conventions, field_orders, other_conventions
from statetool.java.hashing.formulas import (
    HashFormula,
    class_fields,
    formula_hash,
    hash_serializer,
    part_hash,
    user_class,
    user_classes,
)
from statetool.java.hashing.keys import KeyHasher, decode_key
from statetool.serializers.avro.serializer import AvroSerializer
from statetool.serializers.core.base import Serializer
from statetool.types.conventions import STYLES, Convention, Style

MOST_CHANCE: Final = 1e-9
_MOST_KEYS: Final = 4096
_FIRST_KEYS: Final = 64
_MOST_COMBINATIONS: Final = 20_000
_SAMPLED: Final = EntryRequest(batch_bytes=4 << 20)
_ALTERNATIVES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyProof:
    """The hash formula of keys, and its certainty.

    ``formula`` is ``None`` if the key type has a known hash code. ``keys_tested`` counts the different hash codes, ``chance``
    bounds the probability that a wrong formula passes.
    """

    formula: HashFormula | None = None
    keys_tested: int = 0
    chance: float = 0.0


@dataclass(frozen=True, slots=True)
class Sample:
    """Distinct keys and their key groups."""

    values: list[Any]
    groups: list[int]
    max_parallelism: int


def prove_hashes(sources: Sequence[KeyGroupReader], key: Serializer, declared: HashFormula) -> KeyProof:
    """Find the hash formula of an operator's keys.

    Parameters
    ----------
    sources
        The operator's keyed state.
    declared
        The formula that the user declared; it is tested too.

    Raises
    ------
    UnsupportedError
        No formula fits, several fit, or there are too few keys to prove one.
    OptionError
        The declared formula, or that of the job's jar, does not fit.
    """
    classes = user_classes(key)
    if not sources:
        return KeyProof()
    if not classes:
        for value in sample_keys(sources, key, most=1).values:
            try:
                key.hash_code(value)
            except UnsupportedError as error:
                raise UnsupportedError(
                    error.message,
                    hint=f"choose a divisor of {sources[0].context.max_parallelism} as max parallelism: it needs no hash codes",
                ) from None
        return KeyProof()
    if key.needs_frame:
        raise UnsupportedError(
            f"keys of type {key.type_name} cannot be taken apart, so their hash code cannot be found",
            hint=_declaration_hint(sources, classes),
        )
    declared = declared.with_types(classes, sources[0].context.types)
    sample = sample_keys(sources, key)
    if not sample.values:
        return KeyProof(formula=declared if declared.knows(classes) else None)
    return find_formula(key, declared, sample, _declaration_hint(sources, classes))


def find_formula(key: Serializer, declared: HashFormula, sample: Sample, hint: str) -> KeyProof:
    """Find the formula that puts every key into its key group.

    Parameters
    ----------
    hint
        Advice for the user if no formula is found.

    Raises
    ------
    UnsupportedError
        No formula fits, several fit, or there are too few keys to prove one.
    OptionError
        The declared formula does not fit.
    """
    unknown = {name: s for name, s in user_classes(key).items() if declared.of(name) is None}
    if not unknown:
        return _declared_proof(key, declared, sample)
    return _Search(key, unknown, declared, sample).run(hint)


def sample_keys(sources: Sequence[KeyGroupReader], key: Serializer, *, most: int = _MOST_KEYS) -> Sample:
    """Return distinct keys of an operator; all keys if there are few.

    Raises
    ------
    FormatError
        Bytes are damaged.
    """
    max_parallelism = sources[0].context.max_parallelism
    keys: dict[tuple[int, bytes], Any] = {}
    hasher = KeyHasher(key)
    for value, group, raw in chain.from_iterable(_keys(source, hasher) for source in sources):
        keys.setdefault((group, raw), value)
        if len(keys) >= most:
            break
    return Sample(list(keys.values()), [group for group, _ in keys], max_parallelism)


def _keys(source: KeyGroupReader, hasher: KeyHasher) -> Iterator[tuple[Any, int, bytes]]:
    header = source.header()
    for batch in source.batches(_SAMPLED):
        try:
            start = key_starts(batch, header)
            end = hasher.ends(batch.data, start, batch.key_end)
            _, first = distinct(batch.data, start, end, batch.group)
            for i in first.tolist():
                a, b = int(start[i]), int(end[i])
                yield decode_key(hasher.key, batch.data, a, b), int(batch.group[i]), bytes(batch.data[a:b])
        except StatetoolError as error:
            raise batch.locate(error).at(operator=source.context.operator) from None


def _declaration_hint(sources: Sequence[KeyGroupReader], classes: dict[str, Serializer]) -> str:
    """Return the hint that explains how to declare a hash code, or work without one."""
    name, serializer = next(iter(classes.items()))
    fields = ", ".join(class_fields(serializer))
    example = "avro[1, 10]()" if isinstance(serializer, AvroSerializer) else f"Objects.hash({fields})"
    old = sources[0].context.max_parallelism
    reason = sources[0].context.types.hash_reason(name)
    return (
        (f"the jar gives no formula for {name}: {reason}; " if reason else "")
        + f"declare it, for example hashes={{{name!r}: '{example}'}} (--hash '{name}={example}') with the "
        f"fields in the order in which hashCode() takes them, or choose a divisor of {old} as max parallelism, which needs none"
    )


def _declared_proof(key: Serializer, formula: HashFormula, sample: Sample) -> KeyProof:
    hash_code = formula_hash(formula, key)
    hashes = set()
    for value, group in zip(sample.values, sample.groups, strict=True):
        code = hash_code(value)
        hashes.add(code)
        if key_group_for(code, sample.max_parallelism) != group:
            raise OptionError(
                f"the declared hash code ({formula}) puts {value!r} into key group "
                f"{key_group_for(code, sample.max_parallelism)}, it is stored in {group}",
                hint="correct the declaration, pass the jar of the job that wrote the snapshot, or pass neither to search for the formula",
            )
    return KeyProof(formula=formula, keys_tested=len(hashes), chance=_chance(1, len(hashes), sample))


def _chance(tested: int, hashes: int, sample: Sample) -> float:
    exponent = math.log10(max(tested, 1)) - hashes * math.log10(sample.max_parallelism)
    return float(10.0 ** max(exponent, -300.0))


class _Search:
    """A search over all conventions of all user classes in a key."""

    def __init__(self, key: Serializer, unknown: dict[str, Serializer], declared: HashFormula, sample: Sample) -> None:
        self.key = key
        self.declared = declared
        self.sample = sample
        self.root = user_class(key) if user_class(key) in unknown else None
        self.inner = {name: s for name, s in unknown.items() if name != self.root}
        self.tested = 0

    def run(self, hint: str) -> KeyProof:
        fitting = self.different(self.fitting())
        if not fitting:
            raise UnsupportedError(
                f"none of {self.tested} formulas puts the {len(self.sample.values)} keys of {self.key.type_name} into the key groups in "
                "which they are stored (an enum or array among the fields hashes by identity, which no snapshot can tell)",
                hint=hint,
            )
        if len(fitting) > 1:
            alternatives = " or ".join(str(f) for f, _ in fitting[:_ALTERNATIVES])
            raise UnsupportedError(
                f"{len(fitting)} formulas fit all {len(self.sample.values)} keys of {self.key.type_name}: {alternatives}",
                hint=hint,
            )
        formula, hashes = fitting[0]
        count = len(set(hashes))
        chance = _chance(self.tested, count, self.sample)
        if chance > MOST_CHANCE:
            raise UnsupportedError(
                f"{formula} fits, but {count} different hash codes in {self.sample.max_parallelism} key groups do not prove it: one of "
                f"{self.tested} tested formulas would fit by chance with a probability of up to {min(chance, 1.0):.1g}",
                hint=hint,
            )
        return KeyProof(formula=formula, keys_tested=count, chance=chance)

    def fitting(self) -> Iterator[HashFormula]:
        """Yield the formulas that put the first keys into their key groups."""
        for combination in self.combinations():
            base = HashFormula(tuple(sorted({**dict(self.declared.classes), **combination}.items())))
            if self.root is not None:
                yield from self.of_root(base)
            else:
                self.tested += 1
                if self.fits(base, _FIRST_KEYS):
                    yield base

    def combinations(self) -> Iterator[dict[str, Convention]]:
        """Yield conventions for the classes inside the key; none for a class whose field may be left out by the key class."""
        lists = [list(few_conventions(s)) for s in self.inner.values()]
        most = max(2, int(_MOST_COMBINATIONS ** (1 / max(1, len(lists)))))
        if self.root is not None:
            # Each combination is a separate search.
            most = min(most, max(2, int(400 ** (1 / max(1, len(lists))))))
        options: list[list[Convention | None]] = [
            [*([None] if self.root is not None else []), *islice(conventions, most)] for conventions in lists
        ]
        for chosen in product(*options):
            yield {n: c for n, c in zip(self.inner, chosen, strict=True) if c is not None}

    def fits(self, formula: HashFormula, keys: int) -> bool:
        """Return True if a formula puts keys into their key groups."""
        hash_code = formula_hash(formula, self.key)
        sample = self.sample
        try:
            return all(
                key_group_for(hash_code(v), sample.max_parallelism) == g
                for v, g in zip(sample.values[:keys], sample.groups[:keys], strict=True)
            )
        except UnsupportedError:
            return False

    def of_root(self, base: HashFormula) -> Iterator[HashFormula]:
        """Yield the fitting formulas of the key class; ``base`` has the conventions of the classes inside."""
        assert self.root is not None
        fields = class_fields(self.key)
        hashed_fields = {name: hash_serializer(field, base) for name, field in fields.items()}
        tested_columns: set[bytes] = set()
        usable: list[str] = []
        for style in STYLES:
            columns = {n: c for i, n in enumerate(fields) if (c := self.column(i, hashed_fields[n], style)) is not None}
            usable = list(columns)
            if not usable:
                continue
            hashes = np.array(list(columns.values()), dtype=np.int64).T
            if hashes.tobytes() in tested_columns:
                continue
            tested_columns.add(hashes.tobytes())
            orders = field_orders(len(usable))
            groups = np.array(self.sample.groups[:_FIRST_KEYS], dtype=np.int64)
            search = Polynomials(orders, hashes, groups, self.sample.max_parallelism)
            self.tested += search.count
            for start, multiplier, order in search.surviving():
                names = tuple(usable[i] for i in orders[order])
                yield self.with_root(
                    base,
                    Convention(kind="polynomial", fields=names, start=start, multiplier=multiplier, style=style),
                )
        for convention in other_conventions(self.key, usable):
            formula = self.with_root(base, convention)
            self.tested += 1
            if self.fits(formula, _FIRST_KEYS):
                yield formula

    def column(self, place: int, part: Serializer, style: Style) -> list[int] | None:
        """Return the hash codes of one field of the first keys, ``None`` if its type has none."""
        try:
            return [part_hash(part, value[place], style) for value in self.sample.values[:_FIRST_KEYS]]
        except UnsupportedError:
            return None

    def with_root(self, base: HashFormula, convention: Convention) -> HashFormula:
        assert self.root is not None
        return HashFormula(tuple(sorted({**dict(base.classes), self.root: convention}.items())))

    def different(self, formulas: Iterator[HashFormula]) -> list[tuple[HashFormula, tuple[int, ...]]]:
        """Return the formulas that fit all keys, each with the keys' hash codes. Formulas with equal hash codes count once: the first."""
        by_hashes: dict[tuple[int, ...], HashFormula] = {}
        for formula in formulas:
            if self.fits(formula, len(self.sample.values)):
                hash_code = formula_hash(formula, self.key)
                by_hashes.setdefault(tuple(hash_code(v) for v in self.sample.values), formula)
        return [(formula, hashes) for hashes, formula in by_hashes.items()]
