"""A Chinese page says what its English page says: the same code and outputs, which the tests of the English page execute, and the same links."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.sandbox import ROOT
from tools.translations import chinese_of, copy_code, differences, english_of, translations, with_english_anchors

PAGES = {str(page.relative_to(ROOT)): page for page in translations()}
PAGE = ROOT / "docs" / "zh" / "recipes" / "change-max-parallelism.md"


def texts(page: Path) -> tuple[str, str]:
    """Return the Chinese and the English text of a page."""
    english = english_of(page)
    assert english is not None
    return page.read_text("utf-8"), english.read_text("utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_a_chinese_page_says_what_the_english_page_says(name: str) -> None:
    assert list(differences(PAGES[name], *texts(PAGES[name]))) == []


def test_the_readme_the_first_pages_and_ten_recipes_are_in_chinese() -> None:
    assert [name for name in PAGES if "/recipes/" not in name] == [
        "README.zh.md", "docs/zh/getting-started.md", "docs/zh/index.md",
    ]  # fmt: skip
    assert len(PAGES) >= 13
    assert chinese_of(ROOT / "docs" / "index.md") == ROOT / "docs" / "zh" / "index.md"
    assert chinese_of(ROOT / "docs" / "install.md") is None


@pytest.mark.parametrize(
    ("right", "wrong", "problem"),
    [
        ("--max-parallelism 256 --dry-run", "--max-parallelism 512 --dry-run", "code and outputs differ"),
        (
            "daily-sales                        128 -> 256",
            "daily-sales                        128 -> 257",
            "code and outputs",
        ),
        ("## 哪些内容无法移动", "### 哪些内容无法移动", "in English"),
        ("| `formula` | 计算某个类的哈希码的公式 |\n", "", "in English"),
        ("writing.md#rescale", "writing.md#rescal", "links differ"),
        ("`pipeline.max-parallelism`", "`pipeline.parallelism`", "names in `code`"),
        ("[English](../../recipes/change-max-parallelism.md)", "[English](../../index.md)", "no line below its title"),
        ("checksum ", "checksum 0", "has changed since it was translated"),
    ],
)
def test_a_difference_is_found(right: str, wrong: str, problem: str) -> None:
    text, english = texts(PAGE)
    changed = text.replace(right, wrong, 1)
    assert changed != text
    assert any(problem in found for found in differences(PAGE, changed, english))


def test_a_lost_number_is_found() -> None:
    page = ROOT / "docs" / "zh" / "index.md"
    text, english = texts(page)
    assert list(differences(page, text.replace("2,778", "2,777"), english)) == ["numbers are missing: ['2,778']"]


def test_a_link_to_an_english_page_that_has_a_chinese_one_is_found() -> None:
    page = ROOT / "docs" / "zh" / "index.md"
    text, english = texts(page)
    changed = text.replace("](recipes/find-large-state.md)", "](../recipes/find-large-state.md)")
    assert next(differences(page, changed, english)).startswith("links differ")


def test_a_changed_english_sentence_asks_for_a_look_and_a_changed_output_for_a_copy() -> None:
    text, english = texts(PAGE)
    sentence = list(differences(PAGE, text, english.replace("no hash code is needed", "one hash code is needed")))
    assert [problem.rpartition(": ")[2] for problem in sentence] == [
        "correct the Chinese page, then run python -m tools.translations --accept docs/zh/recipes/change-max-parallelism.md"
    ]
    output = english.replace("11.1 KiB", "11.2 KiB")
    assert list(differences(PAGE, text, output)) == ["code and outputs differ: run python -m tools.translations"]
    assert list(differences(PAGE, copy_code(text, output), output)) == []
    assert list(differences(PAGE, text, english.replace("\nsavepoint. `rescale`", " savepoint. `rescale`"))) == []


def test_the_site_gives_chinese_headings_the_english_anchors() -> None:
    english = "# One `a`\n```bash\n# no heading\n```\n## Two\n## Two\n"
    chinese = "# 一 `a`\n```bash\n# no heading\n```\n## 二\n## 二\n"
    expected = "# 一 `a` {#one-a}\n```bash\n# no heading\n```\n## 二 {#two}\n## 二 {#two_1}\n"
    assert with_english_anchors(chinese, english) == expected
