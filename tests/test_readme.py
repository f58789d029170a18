"""Examples in the documentation are executed, and their outputs compared."""

from __future__ import annotations

import pytest

from tests.support.quick import quick
from tools.examples import ROOT, check_page, pages_with_examples, run_page

PAGES = {str(page.relative_to(ROOT)): page.read_text("utf-8") for page in pages_with_examples()}
#: Pages without Spark, and the README.
QUICK = ("README.md", "docs/index.md", "docs/recipes/find-large-state.md", "docs/reference/types.md")


@pytest.mark.whole
@pytest.mark.parametrize("page", quick(list(PAGES), *QUICK))
def test_examples_show_what_they_show(page: str) -> None:
    from statetool.spark.session import has_data_sources

    if not has_data_sources() and "flink-state" in PAGES[page]:
        pytest.skip("the page uses data sources, which PySpark 3.5 does not have")
    assert check_page(ROOT / page) == "", "run python -m tools.examples"


def test_a_wrong_output_is_found(tmp_path_factory: pytest.TempPathFactory) -> None:
    page = "```python\n1 + 1\n```\n```text\n3\n```\n\n```bash\nseq 9\n```\n```text\n1\n2\n...\n9\n```\n"
    assert run_page(page, tmp_path_factory.mktemp("page")) == page.replace("\n3\n", "\n2\n", 1)


def test_the_readme_starts_with_the_two_commands() -> None:
    readme = PAGES["README.md"]
    head = readme[:1800]
    assert "pip install -e '.[spark]' && statetool demo" in head
    assert "pip install -e '.[test]' && pytest" in head
    assert "Python 3.11" in " ".join(head.split())
    assert "Java 17" in head
    assert readme.count("\n") <= 100
