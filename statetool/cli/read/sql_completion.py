"""Completion of keywords, tables and columns at the SQL prompt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from prompt_toolkit.completion import Completer, Completion

from statetool.errors import StatetoolError
from statetool.tables.sql.duckdb_tables import quote
from statetool.tables.sql.engine import Engine

KEYWORDS: Final = (
    "SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "HAVING", "LIMIT", "JOIN", "LEFT JOIN", "USING", "ON", "AND", "OR", "NOT", "IN", "IS NULL",
    "DESC", "COUNT", "SUM", "AVG", "MIN", "MAX", "DISTINCT", "DESCRIBE", "SHOW TABLES", "SUMMARIZE", "WITH", "UNNEST", "CAST",
)  # fmt: skip


class TableCompleter(Completer):
    """Completes the word before the cursor: columns of the tables that the statement names, tables, schemas and keywords."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def get_completions(self, document: Any, complete_event: Any) -> Iterator[Completion]:
        """Yield the completions."""
        word = document.get_word_before_cursor(pattern=_word())
        for name in self.candidates(document.text):
            if name.lower().startswith(word.lower()) and name.isprintable():
                yield Completion(name, start_position=-len(word))

    def candidates(self, text: str) -> Iterator[str]:
        """Yield the names that a statement may contain."""
        try:
            for name in self._engine.columns_in(text):
                yield name if name.isidentifier() else quote(name)
            yield from self._engine.names()
        except StatetoolError:  # a prompt must not show errors while the user types
            pass
        yield from KEYWORDS


def _word() -> Any:
    import re

    return re.compile(r"[\w.]+")
