from __future__ import annotations

from pathlib import Path

from statetool.cli.support import END, GAPS, START, support_table
from statetool.serializers.table import READERS

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_the_support_table_is_that_of_the_code() -> None:
    table = README[README.index(START) : README.index(END) + len(END)]
    assert table == support_table()
    assert set(GAPS) <= set(READERS)


def test_the_readme_starts_with_the_two_commands() -> None:
    head = README[:900]
    assert "pip install -e . && statetool demo" in head
    assert "pip install -e '.[test]' && pytest" in head
    assert "Python 3.10" in head
    assert "Java 17" in head
