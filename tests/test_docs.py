"""The documentation names only what exists: pages, headings, commands, options, functions, files, messages."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
import pytest

import statetool
from statetool.connectors import registry
from statetool.serializers.core.packages import known_name
from statetool.serializers.table import SNAPSHOT_CLASSES
from statetool.tables.request import OPTIONS
from tests.support.corpora.archives import HERE, unpack
from tests.support.facts import gather
from tools import cli_reference, support_tables
from tools.examples import GENERATED, ROOT, WIDTH, pages
from tools.generated import PARTS, stale_parts
from tools.translations import english_of

DOCS: Final = ROOT / "docs"
PAGES: Final = {str(page.relative_to(ROOT)): page.read_text("utf-8") for page in pages()}
COMMANDS: Final = {c.name: c for c in cli_reference.walk()}
LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
FENCE: Final = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
#: Options of other programs, by the page that names them.
FOREIGN: Final = {
    "docs/internals/contributing.md",
    "docs/internals/benchmarks.md",
    "docs/internals/first-change.md",
    "docs/internals/releasing.md",
    "docs/operations/performance.md",
    "docs/operations/security.md",
    "docs/operations/clusters.md",
    "docs/operations/object-stores.md",
    "docs/reference/spark.md",
    "docs/reference/restore-rules.md",
    "docs/recipes/follow-checkpoints.md",
}


def anchors(file: Path) -> set[str]:
    """Return the anchors of a page's headings on the site: a Chinese page has those of its English page."""
    return slugs((english_of(file) or file).read_text("utf-8"))


def slugs(text: str) -> set[str]:
    """Return the anchors of headings, as the site spells them."""
    from markdown.extensions.toc import slugify

    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.MULTILINE)
    return {slugify(re.sub(r"`|\[|\]\([^)]*\)", "", heading), "-") for heading in headings}


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    broken = []
    for link in LINK.findall(FENCE.sub("", PAGES[name])):
        path, _, anchor = link.partition("#")
        if ":" in path:
            continue
        file = ((ROOT / name).parent / path if path else ROOT / name).resolve()
        if file.suffix == ".ipynb":
            file = ROOT / "notebooks" / file.name
        known = anchors(file) if file.suffix == ".md" and file.exists() else set()
        if not file.exists() or (anchor and anchor not in known):
            broken.append(link)
    assert not broken


def test_a_broken_heading_is_found() -> None:
    assert slugs("# Read options\n```\n# no heading\n```\n## The `x`") == {"read-options", "the-x"}


def invocations(text: str) -> Iterator[str]:
    """Yield the calls of statetool in a page's code, without the program and the file of clusters."""
    for code in [block for _, block in FENCE.findall(text)] + re.findall(r"`(statetool [^`]+)`", text):
        for line in code.replace("\\\n", " ").splitlines():
            for call in re.findall(r"(?:^|&& |\| )statetool ([^|>&#]*)", line.strip()):
                yield re.sub(r"^--clusters \S+ ", "", call.strip())


def found_command(call: str) -> cli_reference.Command | None:
    """Return the command that a call names, of one word or two."""
    words = call.split()
    return COMMANDS.get(" ".join(words[:2])) or COMMANDS.get(words[0])


def cut_by_the_site(text: str) -> Iterator[str]:
    """Yield lines of tables in the outputs of a page that are wider than a line of the site. Lines without columns fold there."""
    for kind, output in FENCE.findall(text):
        lines = textwrap.dedent(output).splitlines() if kind in ("text", "json") else []
        yield from (line for line in lines if len(line) > WIDTH and re.search(r"\S {2,}\S|^[|+].*[|+]$", line))


@pytest.mark.parametrize("name", PAGES)
def test_no_table_on_a_page_is_wider_than_the_site(name: str) -> None:
    assert list(cut_by_the_site(PAGES[name])) == [], "run python -m tools.examples, or show fewer columns"


def test_a_wide_table_is_found() -> None:
    value, cell = "v" * WIDTH, "c" * (WIDTH - 3)
    text = f"```text\n{value} {value}\n{cell}  c\n{cell}  cc\n| {cell} |\n```\n```bash\n{value}  {value}\n```\n"
    assert list(cut_by_the_site(text)) == [f"{cell}  cc", f"| {cell} |"]


@pytest.mark.parametrize("name", PAGES)
def test_commands_and_their_options_exist(name: str) -> None:
    groups = {command.split()[0] for command in COMMANDS if " " in command}
    wrong = []
    for call in invocations(PAGES[name]):
        command = found_command(call)
        if command is None:
            if call.split()[0] not in {*groups, "COMMAND", "--debug", "--version", "..."}:
                wrong.append(call)
            continue
        known = {o for p in command.command.get_params(command.context) for o in (*p.opts, *p.secondary_opts)}
        wrong += [f"{call}: {o}" for o in re.findall(r"(?<!\S)(--?[a-z][\w-]*)", call) if o not in known]
    assert not wrong


@pytest.mark.parametrize("name", sorted(set(PAGES) - FOREIGN))
def test_options_in_the_text_exist(name: str) -> None:
    known = {"--clusters", "--debug", "--version", "--help"}
    for command in COMMANDS.values():
        known |= {o for p in command.command.get_params(command.context) for o in p.opts}
    text = re.sub(r"`(?:python|pip|pytest|mkdocs|flink|spark-submit|conda-pack|--py-files)[^`]*`", "", PAGES[name])
    named = re.findall(r"`(--[a-z][\w-]*)", FENCE.sub("", text))
    assert [o for o in named if o not in known] == []


def test_every_command_is_in_the_reference() -> None:
    shown = {n for group in (*cli_reference.EXAMPLES.values(), *cli_reference.INTERACTIVE.values()) for n in group}
    assert shown == set(COMMANDS)


def test_every_public_name_is_in_the_reference() -> None:
    page = PAGES["docs/reference/python.md"]
    shown = {getattr(statetool, name) for name in re.findall(r"^::: statetool\.(\w+)$", page, re.MULTILINE)}
    elsewhere = {"__version__", "flink", "StatetoolError"}
    assert [name for name in statetool.__all__ if name not in elsewhere and getattr(statetool, name) not in shown] == []


@pytest.mark.parametrize("name", PAGES)
def test_functions_and_methods_exist(name: str) -> None:
    text = PAGES[name]
    objects: dict[str, Any] = {
        "statetool": statetool,
        "sp": statetool.Savepoint,
        "op": statetool.Operator,
        "operator": statetool.Operator,
    }
    wrong = []
    for holder, attribute in re.findall(r"(?<![\w.\"'/-])(statetool|sp|op|operator)\.([a-z]\w+)\(", text):
        if not hasattr(objects[holder], attribute):
            wrong.append(f"{holder}.{attribute}")
    assert not wrong


@pytest.mark.parametrize(
    "name",
    [
        f"docs/internals/{n}.md"
        for n in ("index", "extending", "contributing", "benchmarks", "decisions", "first-change", "releasing")
    ],
)
def test_files_exist(name: str) -> None:
    named = re.findall(r"`((?:[\w.-]+/)+[\w.-]*)`", FENCE.sub("", PAGES[name]))
    wrong = [f for f in named if not (ROOT / f).exists() and not (ROOT / "statetool" / f).exists()]
    assert [f for f in wrong if f.partition("/")[0] not in ("DIR", "shared")] == []


def test_generated_parts_exist() -> None:
    assert {part["name"] for text in PAGES.values() for part in GENERATED.finditer(text)} == set(PARTS)


def test_generated_parts_without_examples_are_those_of_the_code() -> None:
    """The build of the site compares them all."""
    cheap = [text for text in PAGES.values() if GENERATED.search(text) and "generated: commands" not in text]
    assert [name for text in cheap for name in stale_parts(text)] == [], "run python -m tools.generated"


def test_messages_that_troubleshooting_explains_are_those_of_the_code() -> None:
    code = " ".join(f.read_text() for f in (ROOT / "statetool").rglob("*.py"))
    ours = PAGES["docs/operations/troubleshooting.md"].partition("## What Flink says")[0]
    messages = re.findall(r"^\| `(.*?)` \|", ours, re.MULTILINE)
    assert len(messages) > 10
    assert [m for m in messages if m not in code] == []


def test_the_table_of_options_is_that_of_the_code() -> None:
    page = PAGES["docs/reference/options.md"]
    rows = re.findall(r"^\| (`.*?) \| (.*) \|$", page[page.index("Options of every read") :], re.MULTILINE)
    table = {name: text for names, text in rows for name in re.findall(r"`(\w+)`", names)}
    for name, option in OPTIONS.items():
        if name != "table":
            text = table["ttl" if name in ("ttl_ms", "now_ms") else name]
            assert set(option.words) <= set(re.findall(r"`(\w+)`", text))
            assert not option.words or f"`{option.default}` (default)" in text
    assert all(f"`{name}=`" in table["ttl"] for name in ("ttl_ms", "now_ms"))
    assert set(table) <= set(OPTIONS)


def test_the_table_of_serializers_has_every_class() -> None:
    table = support_tables.support_table()
    names = {known_name(name) or name for name in SNAPSHOT_CLASSES}
    assert all(f"`{name}`" in table for name in names)
    assert set(support_tables.verified()) <= names


def test_the_tables_of_snapshots_and_columns(tmp_path: Path) -> None:
    kinds = support_tables.snapshot_kinds(support_tables.unpack_cases(tmp_path))
    snapshots = support_tables.snapshot_table(kinds)
    assert "| heap | canonical savepoint |  | 1.13 1.15 1.17 1.20 2.0 2.3 |" in snapshots
    assert "| BIGINT | `Long` | `Types.LONG` | yes |" in support_tables.column_table()


def test_the_matrix_of_releases_counts_what_their_tests_prove() -> None:
    table = support_tables.version_table({("heap", "checkpoint", ""): {(1, 20), (2, 3)}, ("heap", "x", ""): {(2, 3)}})
    rows = {line.split(" | ")[0].strip("| "): line.split(" | ")[1:4] for line in table.splitlines()[2:]}
    assert [rows[release][0] for release in ("2.3", "1.20", "1.17")] == ["2", "1", ""]
    assert [rows[release][2] for release in ("2.3", "1.20", "1.17")] == ["yes", "yes", ""]
    assert int(rows["2.3"][1]) > 100


def test_the_table_of_connectors_names_versions_without_bytes(tmp_path: Path) -> None:
    lines = support_tables.connector_table(tmp_path).splitlines()
    assert {f"`{c.name}`" for c in registry.connectors()} <= {line.split(" | ")[0].strip("| ") for line in lines}
    assert not [line for line in lines if "no bytes" in line]
    assert "| `mongodb-source` | splits 0, enumerators 0 | release 1.1.0 |  |" in lines
    missing = {
        line.split("`")[1]: line.split(" | ")[3].rstrip("| ") for line in lines[2:-2] if not line.endswith("|  |")
    }
    assert missing == {
        "kinesis-source": "splits 0, 1, enumerators 0",
        "mysql-cdc-source": "enumerators 4",
        "incremental-cdc-source": "enumerators 7",
        "pulsar-source": "enumerators 1",
        "fluss-source": "enumerators 1",
        "file-sink": "writers 1, 2, committables 1",
        "delta-sink": "writers 1",
    }
    assert lines[-1].endswith(
        "| state `_delta_join_operator_async_wait_state_` | jobs in Flink 2.1.3, 2.2.1, 2.3.0 |  |"
    )


@pytest.mark.full
def test_what_the_support_table_says_is_what_the_corpora_show(corpus: Path, tmp_path: Path) -> None:
    """The file was made from more snapshots than the project has; the results of the available ones must be in it."""
    cases = unpack(HERE / "serializers" / "generated.tar.xz", tmp_path)
    avro = unpack(HERE / "serializers" / "avro" / "cases.tar.xz", tmp_path / "avro")
    facts = support_tables.verified()
    shown = gather([cases, avro, corpus])
    assert len(shown) > 80
    for name, row in shown.items():
        assert set(row["versions"].split()) <= set(facts[name]["versions"].split()), name
        for column in ("read", "written", "kernel"):
            said = facts[name][column]
            assert said == row[column] or row[column] in ("exact bytes", "no", "parts") or said == "partly", (
                name,
                column,
            )


def test_the_changelog_is_short() -> None:
    """A release has few lines with links. What changes in detail is on the pages."""
    for release in PAGES["docs/changelog.md"].split("\n## ")[1:]:
        lines = [line for line in release.splitlines() if line]
        assert len(lines) <= 25, lines[0]
        assert [line for line in lines if len(line) > 240] == []


def test_help_texts_become_paragraphs() -> None:
    command = click.Command("x", help="First line.\n\n\b\n  a\n  b")
    assert cli_reference.prose(command.help or "") == "First line.\n\n```text\n  a\n  b\n```"


def test_a_strangers_ten_minutes_are_on_the_page() -> None:
    from tests.ten_minutes import PAGE, steps

    commands = "\n".join(code for _, code in steps(PAGE.read_text("utf-8")))
    order = [
        "pip install -e '.[spark]'",
        "statetool info",
        "import statetool",
        "statetool stats",
        "statetool transform",
    ]
    order += ["statetool verify", "statetool check"]
    places = [commands.index(words) for words in order]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("restore fails", "docs/recipes/job-does-not-restore.md"),
        ("GDPR", "docs/recipes/delete-a-key.md"),
        ("spark-submit", "docs/operations/clusters.md"),
    ],
)
def test_the_words_that_people_search_for_are_in_the_first_lines(words: str, page: str) -> None:
    assert words in PAGES[page][:600]


def test_the_picture_of_the_first_page_follows_the_dark_mode() -> None:
    """It is an image, so the browser's setting counts, and a switch of the site does not: it has a background of its own."""
    picture = (DOCS / "images" / "job-savepoint-tables.svg").read_text("utf-8")
    assert "prefers-color-scheme: dark" in picture
    assert 'class="page"' in picture
    assert "images/job-savepoint-tables.svg" in PAGES["README.md"]
    assert "images/job-savepoint-tables.svg" in PAGES["docs/index.md"]
