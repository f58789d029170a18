from __future__ import annotations

from pathlib import Path

from statetool.serializers.table import READERS
from tests.corpora import HERE, unpack
from tests.support_facts import gather
from tests.support_table import END, START, support_table, verified

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_the_support_table_is_that_of_the_code() -> None:
    table = README[README.index(START) : README.index(END) + len(END)]
    assert table == support_table(), "paste what python -m tests.support_table prints"
    assert set(verified()) <= set(READERS)


def test_what_the_support_table_says_is_what_the_corpora_show(corpus: Path, tmp_path: Path) -> None:
    """The file was made from more snapshots than the project has; what these show must stand in it."""
    cases = unpack(HERE / "serializers" / "generated.tar.xz", tmp_path)
    facts = verified()
    shown = gather([cases, corpus])
    assert len(shown) > 80
    for name, row in shown.items():
        assert set(row["versions"].split()) <= set(facts[name]["versions"].split()), name
        for column in ("read", "written", "kernel"):
            said = facts[name][column]
            assert said == row[column] or row[column] in ("exact bytes", "no") or said == "partly", (name, column)


def test_the_readme_starts_with_the_two_commands() -> None:
    head = README[:900]
    assert "pip install -e . && statetool demo" in head
    assert "pip install -e '.[test]' && pytest" in head
    assert "Python 3.10" in head
    assert "Java 17" in head
