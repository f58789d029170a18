"""The page shows the values of the API, loads nothing, and executes nothing from a snapshot."""

from __future__ import annotations

import shutil
import zipfile
from collections import Counter, defaultdict
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import statetool as st
from statetool.cli.main import cli
from statetool.errors import FormatError, OptionError, TargetExistsError, sentence
from statetool.html.markup import element, html
from statetool.html.numbers import moment
from statetool.reporting.report import charts
from statetool.reporting.verdicts.check import check_findings
from statetool.types.operators import display_name
from tests.support.corpora.archives import unpack
from tests.support.flink.write_ahead_job import ARCHIVE
from tests.support.zoo import ZOO

NOW = 1_800_000_000_000
HOSTILE = "<script>alert('x')</script>\"&\u202e\x1b[31m"


class Page(HTMLParser):
    """Visible content of the page: table cells by section, exact numbers if present, titles of charts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags = Counter[str]()
        self.attributes: list[tuple[str, str | None]] = []
        self.rows: dict[str, list[list[str]]] = defaultdict(list)
        self._heads: dict[str, list[int]] = defaultdict(list)
        self.texts: dict[str, list[str]] = defaultdict(list)
        self.titles: dict[str, list[str]] = defaultdict(list)
        self._section = ""
        self._open: list[str] = []
        self.feed(text)
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += attrs
        given = dict(attrs)
        if tag == "meta":
            return
        self._open.append(tag)
        if tag == "section":
            self._section = given.get("id") or ""
        elif tag == "tr":
            self.rows[self._section].append([])
        elif tag in ("td", "th"):
            self.rows[self._section][-1].append("")
            if tag == "th" and len(self.rows[self._section][-1]) == 1:
                self._heads[self._section].append(len(self.rows[self._section]) - 1)
        elif tag == "data":
            self._add(given["value"] or "")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "title" in self._open:
            self.titles[self._section].append(data)
        elif "data" not in self._open:
            self._add(data)

    def records(self, section: str) -> list[dict[str, str]]:
        """Return the rows of a section's tables by column. Empty columns are left out, so they have no name here."""
        records = []
        rows, heads = self.rows[section], self._heads[section]
        for head, end in pairwise([*heads, len(rows)]):
            records += [dict(zip(rows[head], row, strict=True)) for row in rows[head + 1 : end]]
        return records

    def _add(self, text: str) -> None:
        self.texts[self._section].append(text)
        if {"td", "th"} & {*self._open} and "div" not in self._open[self._open.index("table") :]:
            self.rows[self._section][-1][-1] += text


def report(path: Path, sp: st.Savepoint, other: st.Savepoint | None = None, **options: object) -> tuple[bool, Page]:
    target = path / "report.html"
    ok = sp.report(str(target), other, now_ms=NOW, **options).ok  # type: ignore[arg-type]
    return ok, Page(target.read_text())


def exact(*values: object) -> list[str]:
    return ["" if v is None else display_name(v) if isinstance(v, str) else str(v) for v in values]


@pytest.mark.parametrize("case", ["v2_3_0-rocksdb-canonical", "v2_3_0-rocksdb-native"])
def test_numbers_are_those_of_the_statistics(corpus: Path, tmp_path: Path, case: str) -> None:
    sp = st.load(str(corpus / case / "snapshot"))
    _, page = report(tmp_path, sp, ttl_ms=1000, parallelism=5)
    statistics = sp.stats(now_ms=NOW, ttl_ms=1000, parallelism=5)

    operators = {row["operator"]: row for row in page.records("operators") if "stored" in row}
    metadata = {o.operator: o for o in sp.metadata_rows("operators")}
    for o in statistics.rows("operators"):
        row, of_metadata = operators[display_name(o.operator)], metadata[o.operator]
        assert [row["stored"], row["uncompressed"], row["entries"], row["keys"]] == exact(
            of_metadata.state_bytes + of_metadata.coordinator_bytes, o.entries_bytes, o.entries, o.keys
        )
    states = {(row["operator"], row["kind"].split()[0], row["state and types"]): row for row in page.records("states")}
    assert len(states) == len(sp.metadata_rows("states"))
    for s in statistics.rows("states"):
        row = states[display_name(s.operator), s.scope, s.state]
        numbers = [row["uncompressed"], row["entries"], row["keys"], row["largest value"]]
        assert numbers == exact(s.size_bytes, s.entries, s.keys, s.largest_value)

    largest = [
        [row["key group"], row["subtask"], row["length"], row["uncompressed"]] for row in page.records("largest")
    ]
    assert largest == [exact(r.key_group, r.subtask, r.length, r.size_bytes) for r in statistics.rows("largest")]
    timers = [row["timers"] for row in page.records("timers")]
    assert timers == exact(
        *(r.count for r in statistics.rows("timers") if (r.in_at_least_ms, r.in_below_ms) != (None, None))
    )
    ages = [row["values"] for row in page.records("ages")]
    assert ages == exact(*(r.count for r in statistics.rows("ages") if r.expired is None))
    counted = Counter[tuple[str, str, str]]()
    for d in statistics.rows("distribution"):
        counted[d.operator, d.state, d.what] += d.count
    assert [row["count"] for row in page.records("distribution")] == exact(*counted.values())
    reads = Counter[tuple[str, int]]()
    for r in statistics.rows("restore"):
        reads[display_name(r.operator), r.parallelism] += r.read_bytes
    read = {(row["operator"], int(row["parallelism"])): int(row["restore reads"]) for row in page.records("subtasks")}
    assert read == dict(reads)

    held = sum(r.size_bytes for r in statistics.rows("sizes") if r.part == "entries" and r.key_group is not None)
    assert sum(int(t.split(": ")[1].split()[0].replace(",", "")) for t in page.titles["key-groups"]) == held


def test_nothing_is_loaded_or_run(tmp_path: Path) -> None:
    _, page = report(tmp_path, st.load(ZOO))
    assert not {"script", "link", "img", "iframe", "object", "form", "input"} & {*page.tags}
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in page.attributes
    assert not [a for a in page.attributes if a[0] in ("src", "action", "style") or a[0].startswith("on")]
    assert all((value or "").startswith("#") for name, value in page.attributes if name == "href")


def test_names_and_keys_of_a_snapshot_stay_text(tmp_path: Path) -> None:
    table = pa.table({"key": [HOSTILE, "b"], "v": ["x", "y"]})
    states = st.bootstrap_keyed_state(table.rename_columns(["key", HOSTILE]), key="key", states={HOSTILE: st.value()})
    folder = tmp_path / "<img src=x onerror=alert(1)>"
    sp = st.SavepointWriter.new().with_operator(HOSTILE, states).write(str(folder), flink_version="2.3")
    _, page = report(tmp_path, sp, sp)
    shown = html(HOSTILE).replace("&lt;", "<").replace("&gt;", ">").replace("&#x27;", "'").replace("&quot;", '"')
    shown = shown.replace("&amp;", "&")
    assert shown.endswith("\\u202e\\x1b[31m")
    assert not {"script", "img"} & {*page.tags}
    assert {(row["operator"], row["state and types"]) for row in page.records("states")} == {(shown, shown)}
    assert {row["key"] for row in page.records("largest") if row["largest"] == "key"} == {
        repr(HOSTILE).replace("\\\\", "\\"),
        "'b'",
    }
    assert not [a for a in page.attributes if a[0].startswith("on")]


def test_a_half_of_a_surrogate_is_written_as_its_escape() -> None:
    assert html("\ud800") == "\\ud800"
    assert element("p", None, 1, "<", class_='"') == '<p class="&quot;">1&lt;</p>'


def test_against_another_snapshot(corpus: Path, tmp_path: Path) -> None:
    sp, other = (st.load(str(corpus / c / "snapshot")) for c in ("v2_3_0-hashmap-canonical", "v2_3_0-rocksdb-native"))
    ok, page = report(tmp_path, sp, other)
    check = st.check(sp, other)
    assert page.texts["restore"][2] == check.verdict.replace("_", " ")
    assert ok is check.ok
    verdicts = {row["operator"]: row["verdict"] for row in page.records("restore") if row.get("state") == ""}
    assert verdicts == {display_name(o.uid): o.verdict.replace("_", " ") for o in check.operators}
    summary = [c for c in sp.diff(other).summary() if c.added + c.removed + c.changed]
    differences = [list(row.values()) for row in page.records("differences")[: len(summary)]]
    assert differences == [
        exact(display_name(c.operator), c.state, c.entries_before, c.entries_after, c.added, c.removed, c.changed)
        for c in summary
    ]
    assert page.texts["findings"].count("error") == sum(f.severity == "error" for f in check_findings(check).findings)
    assert f"statetool rescale {sp.path} NEW --uid by-tuple=300" in " ".join(page.texts["findings"])


def test_what_is_damaged_is_said_and_hides_nothing_else(corpus: Path, tmp_path: Path) -> None:
    folder = tmp_path / "damaged"
    shutil.copytree(corpus / "v2_3_0-rocksdb-canonical" / "snapshot", folder)
    largest = max((f for f in folder.iterdir() if f.name != "_metadata"), key=lambda f: f.stat().st_size)
    raw = largest.read_bytes()
    largest.write_bytes(raw[:3] + b"\0" + raw[4:])
    sp = st.load(str(folder))
    ok, page = report(tmp_path, sp)
    assert not ok
    findings = " ".join(page.texts["findings"])
    assert all(sentence(p.problem) in findings for p in st.verify(sp).problems)
    unread = [s for s in sp.metadata_rows("states") if s.kind == "unread"]
    assert unread
    assert all(s.reason in findings for s in unread)
    assert len([row for row in page.records("operators") if "stored" in row]) == len(sp.operators)
    with pytest.raises(FormatError) as raised:
        sp.stats()
    assert raised.value.message in page.texts["findings"]


def test_the_top_names_what_was_not_read_and_findings_say_what_to_run(tmp_path: Path) -> None:
    sp = st.load(ZOO)
    _, page = report(tmp_path, sp)
    unread = [s for s in sp.metadata_rows("states") if not s.readable]
    assert unread
    top = page.texts[""]
    assert top.index("Not read or not checked: ") + 1 < top.index("checkpoint")
    named = top[top.index("Not read or not checked: ") + 1]
    assert named == "; ".join(f"operator {s.operator} › state {s.name}" for s in unread)
    findings = page.texts["findings"]
    assert all(s.reason in findings for s in unread)
    assert f"statetool report {ZOO} --jar FILE" in findings


def test_ids_are_shown_on_request_only(tmp_path: Path) -> None:
    sp = st.load(ZOO)
    _, page = report(tmp_path, sp)
    ids = {o.operator_id for o in sp.metadata_rows("operators")}
    listed = {row["operator id"] for row in page.records("operators") if "operator id" in row}
    assert listed == ids
    cells = [cell for rows in page.rows.values() for row in rows for cell in row]
    assert sum(any(i in cell for i in ids) for cell in cells) == len(ids)
    assert {value for name, value in page.attributes if name == "title"} >= {
        f"no-uid, operator id {i}"
        for i in ids
        if i not in {o.operator_id for o in sp.metadata_rows("operators") if o.uid}
    }


def test_the_command_counts_warnings(tmp_path: Path) -> None:
    """A file that only state names is gone: a restored sink sends nothing."""
    (checkpoint,) = (unpack(ARCHIVE, tmp_path / "jobs") / "v2_3_0").glob("chk-*")
    next((checkpoint.parent / "taskowned").iterdir()).unlink()
    done = CliRunner().invoke(cli, ["report", str(checkpoint), "--target", str(tmp_path / "a.html")])
    assert done.exit_code == 0
    assert done.stderr.splitlines()[-1].endswith("a.html: no errors, 1 warning found")


def test_what_is_not_read_is_no_success(tmp_path: Path) -> None:
    sp = st.load(ZOO)
    unread = [s for s in sp.metadata_rows("states") if not s.readable]
    done = CliRunner().invoke(cli, ["report", ZOO, "--target", str(tmp_path / "a.html")])
    assert done.exit_code == 1
    for state in unread:
        assert f"not read: {state.operator}, {state.name}: {state.reason}" in done.stderr
    assert "no problems found in the state that was read" in done.stderr
    assert "could not be read" in done.stderr
    known = CliRunner().invoke(cli, ["report", ZOO, "--target", str(tmp_path / "b.html"), "--allow-unread"])
    assert known.exit_code == 0, known.stderr
    assert "not read: " in known.stderr
    assert not sp.report(str(tmp_path / "c.html"))
    ok, page = report(tmp_path, sp, allow_unread=True)
    assert ok
    assert any(unread[0].name in text for text in page.texts["findings"])
    told = CliRunner().invoke(cli, ["report", "--help"]).stdout
    assert "Exits 1" in told


def test_sources_and_sinks_that_nobody_reads_are_named(connector_cases: Path, tmp_path: Path) -> None:
    sp = st.load(str(connector_cases / "v2_3_0-kafka-sink" / "snapshot"))
    ok, page = report(tmp_path, sp)
    assert not ok
    unknown = [c for c in sp.connector_rows("source_checks") if c.check == "unknown"]
    assert unknown
    assert {sentence(c.message) for c in unknown} <= set(page.texts["findings"])


def test_what_is_wrong_counts_though_something_may_stay_unread(connector_cases: Path, tmp_path: Path) -> None:
    sp = st.load(str(connector_cases / "v2_3_0-kafka-source-inconsistent" / "snapshot"))
    assert not sp.report(str(tmp_path / "r.html"), allow_unread=True)


@pytest.mark.parametrize(
    ("case", "whole"),
    # No connector recognizes the source before the sink, so its split assignment cannot be checked.
    [("v2_3_0-kafka-source", True), ("v2_3_0-kafka-source-inconsistent", False), ("v2_3_0-kafka-sink", False)],
)
def test_sources_and_sinks(connector_cases: Path, tmp_path: Path, case: str, whole: bool) -> None:
    sp = st.load(str(connector_cases / case / "snapshot"))
    ok, page = report(tmp_path, sp)
    assert ok is whole
    rows = iter(page.rows["connections"])
    for table, names in (
        ("sources", ("operator", "connector", "subtasks", "held")),
        ("source_checks", ("operator", "split_id", "subtasks")),
        ("sinks", ("operator", "connector", "role", "pending")),
    ):
        if records := sp.connector_rows(table):
            next(rows)  # the names
            present = [n for n in names if any(getattr(r, n) not in (None, "") for r in records)]
            assert [next(rows)[: len(present)] for _ in records] == [
                exact(*(display_name(v) if isinstance(v := getattr(r, n), str) else v for n in present))
                for r in records
            ]
    assert not list(rows)


def test_the_command_reports_the_newest_of_a_directory_and_what_grew(corpus: Path, tmp_path: Path) -> None:
    root, target = str(corpus / "v2_3_0-rocksdb-incremental"), tmp_path / "grown.html"
    done = CliRunner().invoke(cli, ["report", root, "--target", str(target), "--allow-unread"])
    assert done.exit_code == 0, done.output
    page = Page(target.read_text())
    rows = st.growth(root)
    total = Counter[str]()
    for r in rows:
        total[r.path] += r.size_bytes or 0
    shown = {row[1]: int(row[2]) for row in page.rows["growth"][1 : 1 + len(total)]}
    assert shown == dict(total)
    assert next(r.path for r in st.list_snapshots(root) if r.newest) in page.texts[""]


def test_the_command_against_another_snapshot(tmp_path: Path) -> None:
    target = tmp_path / "both.html"
    done = CliRunner().invoke(cli, ["report", ZOO, ZOO, "--target", str(target), "--flink", "1.20"])
    assert done.exit_code == 1
    assert "problems found" in done.stderr
    assert "not" in Page(target.read_text()).texts["restore"]
    again = CliRunner().invoke(cli, ["report", ZOO, "--target", str(target)])
    assert again.exit_code == 2
    assert "already exists" in again.stderr


def test_the_command_against_the_jar_of_the_new_job(tmp_path: Path) -> None:
    jar, target = tmp_path / "new.jar", tmp_path / "report.html"
    with zipfile.ZipFile(jar, "w") as file:
        file.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
    CliRunner().invoke(cli, ["report", ZOO, "--jar-b", str(jar), "--target", str(target)])
    page = target.read_text()
    assert "the classes of its jar" in page
    # The jar lacks the classes of the values.
    assert "corpus.PublicTypes" in page
    assert st.load(ZOO).report(other_jars=[str(jar)]).html().count("the classes of its jar") >= 1


def test_a_wrong_option_writes_nothing(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    with pytest.raises(OptionError):
        st.load(ZOO).report(str(target), largest=-1)
    assert not target.exists()
    target.write_text("mine")
    with pytest.raises(TargetExistsError):
        st.load(ZOO).report(str(target))
    assert target.read_text() == "mine"


def test_notebooks_show_the_report_and_pages_are_written_on_request(tmp_path: Path) -> None:
    sp = st.load(ZOO)
    made = sp.report(None, ZOO, now_ms=NOW)
    assert bool(made) is made.ok is False
    shown = made._repr_html_()
    inline = Page(shown)
    assert not {"script", "link", "img", "iframe", "object", "form", "input", "a", "html", "body"} & {*inline.tags}
    # Several reports in one notebook must not share ids.
    assert "id" not in {name for name, _ in inline.attributes}
    page = Page(made.html())
    assert shown.count('class="finding ') == made.html().count('class="finding ') > 0
    assert inline.tags["data"] == page.tags["data"]
    made.write(str(tmp_path / "r.html"))
    assert (tmp_path / "r.html").read_text() == made.html()
    with pytest.raises(TargetExistsError):
        made.write(str(tmp_path / "r.html"))


def test_charts_of_many_values_share_cells() -> None:
    values = [i % 7 for i in range(32768)]
    page = Page(charts.heat_map(values, lambda a, b, n: f"{a}-{b}={n}"))
    assert page.tags["rect"] == charts.MOST_CELLS
    assert sum(int(t.split("=")[1]) for t in page.titles[""]) == sum(values)
    columns = Page(charts.columns(values, lambda a, b, n: f"{a}-{b}={n}"))
    assert columns.tags["rect"] == charts.MOST_COLUMNS
    assert {t.split("=")[1] for t in columns.titles[""]} == {"6"}


def test_charts_of_nothing_are_empty() -> None:
    def label(first: int, last: int, value: int) -> str:
        raise AssertionError((first, last, value))

    for chart in (charts.columns([], label), charts.heat_map([], label), charts.line([]), charts.bar(0, 0)):
        assert Page(chart).titles == {}


def test_times_that_no_calendar_has_are_numbers() -> None:
    assert moment(0) == "1970-01-01 00:00:00 UTC"
    assert moment(2**63 - 1) == "9,223,372,036,854,775,807 ms"
