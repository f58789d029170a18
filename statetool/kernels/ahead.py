"""Ahead-of-time compilation of kernels, for every combination of argument types that they are called with."""

from __future__ import annotations

import importlib
import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from statetool.kernels.core import kept, numba_private
from statetool.kernels.core.jit import BEFORE_COMPILING, NOTHING, Kernel, allowance
from statetool.kernels.entries.heap import StatePrograms
from statetool.kernels.entries.walk import KeyGroups, Rows, StateRuns
from statetool.kernels.graphs.flat_program import Layout
from statetool.kernels.rocksdb.merge import BlockRuns, MergeScratch

_TUPLES: Final = {t.__name__: t for t in (BlockRuns, MergeScratch, KeyGroups, Layout, Rows, StatePrograms, StateRuns)}
_WORDS: Final = re.compile(r"\w+\([^)]*\)|\S+")

#: Each line is a kernel and its argument types. An array is written as the NumPy name of its element type, then ``:2`` if it has two
#: dimensions (``:3`` for three), ``:A`` if it may be non-contiguous, and ``r`` if it is read-only.
SIGNATURES: Final = tuple(
    """\
blocks.decode_blocks u1r i8 i8 u1 i8 i8 u8 i8 i8
blocks.decode_index u1r int int int int u1 i8 i8 i8 i8
blocks.encode_block u1r i8 i8 u1r i8 i8 int i8 u1
blocks.find_values u1 i8 i8 i8 i8 i8 u1r i8 i8:2 i8:2
blocks.measure_blocks u1r i8 i8 i8
blocks.plain_sizes u1r i8 i8 u1 i8 i8 i8
blocks.read_numbers u1r i8 i8 i8:2
blocks.read_varint u1r int int
changes.index_changes u1r int int i8 i8 i8 i8
changes.walk_changes u1r KeyGroups(i8 i8 i8) i8 u1 StatePrograms(i8 int i8:2) i8 u1 Rows(i8 i8 i8 i8 i8 i8)
checksums._first_bad u1r i8 i8 int u8 u1r u8
checksums.crc32c u1r int int u8
comparison.hash_spans u1 i8 i8 i8 u8 u8
comparison.hash_spans u1r i8 i8 i8 u8 u8
comparison.pair_hashes u8 u8 i4 i8 u1
deal.deal_groups u1 i8 i8 i8 i8 i8 i8 int int i8:2 i8:2 u1 i8 i8
deal.deal_groups u1r i8 i8 i8 i8 i8 i8 int int i8:2 i8:2 u1 i8 i8
deal.deal_groups u1r i8 i8 i8:A i8:A i8:A i8:A int int i8:2 i8:2 u1 i8 i8
deal.mark_equal u1 i8 i8 i8 i8 b1
deal.pack_groups u1 i8 i8 i8 i8 i8 i8 i8 int i8:2 u1 i8 i8
deal.pack_groups u1r i8 i8 i8 i8 i8 i8 i8 int i8:2 u1 i8 i8
deal.reorder_groups u1 i8 i8 i8 i8 i8 u1 i8 i8
decode_fixed.check_bytes u1 i8 i8 int int int i8
decode_fixed.check_bytes u1r i8 i8 int int int i8
decode_fixed.bytes_fill u1 i8 i4 u1
decode_fixed.bytes_fill u1r i8 i4 u1
decode_fixed.counted_sizes u1 i8 i8 i8 i8
decode_fixed.counted_sizes u1r i8 i8 i8 i8
decode_fixed.load_fixed u1 i8 i8 int i8 i8
decode_fixed.load_fixed u1r i8 i8 int i8 i8
decode_fixed.first_unfilled i8 i8
decode_fixed.load_flags u1 i8 i8 u1 i8
decode_fixed.load_flags u1r i8 i8 u1 i8
decode_numbers.big_integers u1r i8 i8 i8 u1 u1 i8
decode_numbers.scale_decimals i8 i8 int u8 i8 i8 u1 u1
decode_temporal.load_temporal u1 i8 i8 int int i8 i4 u1 i8
decode_temporal.load_temporal u1r i8 i8 int int i8 i4 u1 i8
decode_text.text_fill u1 i8 i8 i8 i4 u1
decode_text.text_fill u1r i8 i8 i8 i4 u1
decode_text.text_sizes u1 i8 i8 int i8 i8 i8 u1 i8
decode_text.text_sizes u1r i8 i8 int i8 i8 i8 u1 i8
distinct.hash_ranges u1r i8 i8 i8 i8
distinct.number_ranges u1 i8 i8 i8 u8 i8 i8 i8
distinct.number_ranges u1r i8 i8 i8 u8 i8 i8 i8
elements.block_elements u1r i8 i8 i8 i8 int i8 i8 i8 i8 i8 i8
elements.element_positions u1r i8 i8 i8 i8 i8 i8 i8 i8 i8
elements.first_blocks u1r i8 i8 int i8
elements.joined_counts u1 i8 i8 i8 i8
elements.joined_counts u1r i8 i8 i8 i8
elements.joined_positions u1 i8 i8 i8 i8 i8 i8
elements.joined_positions u1r i8 i8 i8 i8 i8 i8
elements.mask_counts u1r i8 i8 i8 i8
elements.masked_positions u1r i8 i8 i8 i8 i8 i8 i8 u1 i8
elements.read_counts u1r i8 i8 int i8 i8
elements.strided_positions i8 i8 i8 int int i8 i8 i8 i8
encode.hash_text u1 i8 i8 i8
encode.hash_text u1r i8 i8 i8
encode.measure_text u1 i8 i8 u1 int i8 i8
encode.store_fixed i8 int u1 i8
encode.store_fixed i8r int u1 i8
encode.store_text u1 i8 i8 i8 i8 int u1 i8
graphs.rewrite u1r Layout(i8 i8:2 u1r bool) i8 i8 int u1 i8 i8 i8 u1
graphs.split u1r Layout(i8 i8:2 u1r bool) i8 i8 u1 i8 i8 i8 i8
heap.walk_heap u1r int KeyGroups(i8 i8 i8) StatePrograms(i8 int i8:2) u1 i8 u1 Rows(i8 i8 i8 i8 i8 i8)
matches.match_paths i8 i8 i8 i8 i8 i8 i8 i8 i8 i8 i8 i8
measures.count_keys i8 i8 i8 i8 i8:3
measures.measure_rows i8 Rows(i8 i8 i8 i8 i8 i8) i8 i8:3 i8:3 i8
measures.select_largest u1r i8 i8 i8 i8 i8 i8
merge.merge_blocks u1r BlockRuns(i8 i8 i8) u1r u1r int int int MergeScratch(u1 i8:2 u8:2 i8) u1 i8 i8 i8
merge.place_entries u1r i8 i8 i8 int int i8 i8 i8 i8
order.count_order i8 i8 i8
order.find_lowest u1 i8 i8 i8 i8 int u8:2
order.find_lowest u1r i8 i8 i8 i8 int u8:2
order.find_parts i8 u8:2 i8 u8:2 i8
order.key_heads u1 i8 i8 u8:2
order.merge_edits u1 i8 i8 i8 int b1 i8
order.sort_segments u1 i8 u8:2 i8 i8 i8 i8 u8:2 i8
paths.fill_table u1r i8 i8
paths.find_texts u1r i8:2 i8 u1r i8 u1r i8 i8 i8
paths.number_directories u1r i8:2 i8 i8
references.scan_subtasks u1r int int int int i8 i8:2
rows.add_offsets i8 i4
rows.count_rows i8 i8
rows.mark_rows i8 b1
skip.skip_many u1 i8 i8 i8 i8
skip.skip_many u1r i8 i8 i8 i8
skip.skip_many u1r i8 i8 i8:A i8
slots.array_counts u1r i8 i8 int i8
slots.array_elements u1r i8 i8 i8 int i8 u1 i8 i8 i8
slots.find_instants u1r i8 i8 i8 u1 i8 i8
slots.find_parts u1r i8 i8 i8 u1 i8 i8 bool i8 i8
slots.load_bools u1r i8 u1 u1
slots.load_little u1r i8 u1 int i1
slots.load_little u1r i8 u1 int i2
slots.load_little u1r i8 u1 int i4
slots.load_little u1r i8 u1 int i8
slots.map_parts u1r i8 i8 i8
slots.read_decimals u1r i8 i8 u1 int uint64 i8:2
slots.row_heads u1r i8 i8 int u1
slots.row_nulls u1r i8 u1:2
slots.variant_parts u1r i8 i8 u1 i8
snappy.plain_blocks u1r i8 i8 u1 u1 i8 i8
sorted_keys.first_not_before u1r i8 i8 u1r int
sorted_keys.mark_blocks u1r i8 i8 u1r i8 i8 u1
taken.range_offsets i4 i8 i8 i4 i8 i8
taken.range_offsets i4r i8 i8 i4 i8 i8
taken.range_offsets i8 i8 i8 i8 i8 i8
taken.range_offsets i8r i8 i8 i8 i8 i8
timers.flip_timers u1r i8 i8 i8 u1
walk.count_below u1 i8 i8 u1r
walk.count_below u1r i8 i8 u1r
walk.deal_rows i8 Rows(i8 i8 i8 i8 i8 i8) i8 i8 Rows(i8 i8 i8 i8 i8 i8)
walk.descent u1 i8 i8
walk.descent u1r i8 i8
walk.index_entries u1r int KeyGroups(i8 i8 i8) int int i8 i8 StateRuns(i8 i8 i8 i8 i8 i8 i8)
walk.match_range u1r i8 i8 u1r u1
walk.rows_at u1 i8 int int int int int int int Rows(i8 i8 i8 i8 i8 i8)
walk.skip_length_markers u1r i8 i8 i8 i8
walk.walk u1 int KeyGroups(i8 i8 i8) int int i8 Rows(i8 i8 i8 i8 i8 i8)
walk.walk u1r int KeyGroups(i8 i8 i8) int int i8 Rows(i8 i8 i8 i8 i8 i8)
words.copy_ranges u1 i8 i8 u1 i8
words.copy_ranges u1r i8 i8 u1 i8
""".splitlines()
)


def described(argument: Any) -> str:
    """Return the type of an argument in the notation of :data:`SIGNATURES`."""
    if isinstance(argument, np.ndarray):
        dimensions = "" if argument.ndim == 1 else f":{argument.ndim}"
        strided = "" if argument.flags.c_contiguous else ":A"
        return f"{argument.dtype.str[1:]}{dimensions}{strided}{'' if argument.flags.writeable else 'r'}"
    if isinstance(argument, tuple):
        return f"{type(argument).__name__}({' '.join(map(described, argument))})"
    return type(argument).__name__


def compile_all() -> None:
    """Compile all kernels, or load the code that is already cached."""
    import numba

    for kernel, arguments in map(_parsed, SIGNATURES):
        kernel.compiled.compile(tuple(numba.typeof(_example(a)) for a in arguments))  # type: ignore[attr-defined]


@cache
def compile_together(names: tuple[str, ...]) -> None:
    """Compile the kernels that are about to be needed, shared among processes that start at the same time and cache code in one folder.

    Each process takes the next kernel that is neither cached nor claimed by another process. Does nothing if the code is
    already cached or cannot be, or compilation is off.

    Parameters
    ----------
    names
        Kernels that work on the bytes of files, slowest to compile first.
    """
    if not any(allowance(name) in (NOTHING, BEFORE_COMPILING) for name in names):
        return
    import numba

    for name in names:
        for kernel, arguments in map(_parsed, SIGNATURES):
            if kernel.name == name and arguments[0] == "u1r" and not any(a.endswith(":A") for a in arguments):
                dispatcher: Any = kernel.compiled
                types = tuple(numba.typeof(_example(a)) for a in arguments)
                if numba_private.is_left(dispatcher, types):
                    dispatcher.compile(types)


def _parsed(line: str) -> tuple[Kernel, list[str]]:
    """Return the kernel of a signature and its argument types."""
    name, *arguments = _WORDS.findall(line)
    module, _, function = name.partition(".")
    kernel: Any = getattr(importlib.import_module(f"{__package__}.{module}"), function)
    assert isinstance(kernel, Kernel)
    return kernel, arguments


def ship(folder: str) -> str | None:
    """Copy the compiled code of these sources to a folder that :data:`~statetool.kernels.core.kept.VARIABLE` can name, and return its path.

    Cached code is readable by its owner only. The copy is readable by everyone who can read new files, because an image is often built by
    one user and run by another. Returns ``None`` if no code can be cached.
    """
    source = kept.target()
    if source is None:
        return None
    target = Path(folder) / kept.stamp()
    shutil.copytree(source, target, copy_function=shutil.copyfile, dirs_exist_ok=True)
    return str(target)


def _example(text: str) -> Any:
    """Return an example argument of the type that a text describes."""
    if text.endswith(")"):
        name, _, members = text.removesuffix(")").partition("(")
        return _TUPLES[name](*map(_example, members.split()))
    if text in ("int", "bool"):
        return {"int": 0, "bool": False}[text]
    if text == "uint64":
        return np.uint64(0)
    kind, *flags = text.removesuffix("r").split(":")
    array = np.empty([4] * next((int(flag) for flag in flags if flag.isdigit()), 1), dtype=kind)
    array = array[::2] if "A" in flags else array
    array.flags.writeable = not text.endswith("r")
    return array
