"""The table of the documentation that says which backend restores which form of keyed state, from restores by real Flink."""

from __future__ import annotations

from typing import Final, get_args

from tests.support.flink.backend_matrix import DIFFER, OF_ASYNCHRONOUS, RELEASES, Backend, Cell, Form, cells
from tests.support.flink.forms import Api

_BACKENDS: Final[dict[Backend, str]] = {"rocksdb": "RocksDB", "heap": "heap", "forst": "ForSt"}
_FORMS: Final[dict[Form, str]] = {
    "canonical": "canonical", "rocksdb": "native of RocksDB", "forst": "native of ForSt", "heap": "native of the heap",
}  # fmt: skip
_APIS: Final[dict[Api, str]] = {"sync": "synchronous", "async": "asynchronous"}


def backend_table() -> str:
    """Return the table as Markdown: a row per form and API of the state, a column per backend and API of the job."""
    columns = [(backend, job) for backend in _BACKENDS for job in get_args(Api)]
    titles = [f"{_BACKENDS[backend]}, {_APIS[job]}" for backend, job in columns]
    lines = [f"| state | snapshot | {' | '.join(titles)} |", "|---|---|" + "---|" * len(columns)]
    for state, text in _APIS.items():
        for form, name in _FORMS.items():
            if state == "async" and form not in OF_ASYNCHRONOUS:
                continue
            found = [
                _answer([c for c in cells() if (c.state, c.form, c.backend, c.job) == (state, form, *column)])
                for column in columns
            ]
            lines.append(f"| {text} | {name} | {' | '.join(found)} |")
    return "\n".join(lines)


def _answer(asked: list[Cell]) -> str:
    """Return the releases that restored it, if not all did."""
    restored = [
        c.release.rpartition(".")[0] for c in sorted(asked, key=lambda c: RELEASES.index(c.release)) if c.is_restored
    ]
    if len(restored) == len(asked):
        return "yes"
    if restored:
        return f"from {restored[0]}"
    # An answer that is no refusal says how many rows differ.
    return "timers lost" if any(c.outcome.endswith(DIFFER) for c in asked) else "refused"
