"""Comparison of rewritten copies of corpus cases with the expected rows."""

from __future__ import annotations

from pathlib import Path

import statetool
from tests.support.checks.corpus_check import Case, Checker


def check_copy(case: Case, folder: Path) -> None:
    """Compare a rescaled copy of a case with the expected rows."""
    checker = Checker(case, None)
    checker.savepoint = statetool.load(str(folder))
    for wanted in case.expected["operators"].values():
        for operator in checker.savepoint.operators.values():
            if operator.operator_id == wanted["operator_id"]:
                wanted["max_parallelism"], wanted["parallelism"] = operator.max_parallelism, operator.parallelism
    checker.run()
    assert checker.problems == []
    assert checker.rows > 0
