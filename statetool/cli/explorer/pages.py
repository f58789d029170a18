"""The pages: snapshots of a directory, a snapshot, a table, a key, a query, and two snapshots side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final

import statetool
from statetool.api.report import describe
from statetool.cli.explorer.cells import cell, key_text, rows_table
from statetool.cli.explorer.layout import address, document, field, form, link
from statetool.cli.explorer.opened import Snapshots
from statetool.cli.explorer.queries import run_query, table_names
from statetool.columns.python_values import rows_to_python
from statetool.compatibility.check import check_inventories
from statetool.compatibility.verdicts import Check
from statetool.errors import OptionError, StatetoolError, several
from statetool.html.markup import Html, element, html, join, table
from statetool.html.numbers import change, moment, size
from statetool.html.operators import operator_name
from statetool.reporting.report import sections, sizes
from statetool.reporting.report.facts import Differences
from statetool.reporting.report.findings import report_findings
from statetool.reporting.report.page import summary
from statetool.reporting.verdicts.markup import finding_blocks
from statetool.tables.keys.text import parse_whole_key
from statetool.tables.kinds.keyed import UNDECODED
from statetool.tables.request import ScanRequest
from statetool.tables.rows import first_rows

PAGE_ROWS: Final = 50
#: An older listing says so.
_SHOWN_AGE_S: Final = 3.0
#: Releases of Flink that the page of a snapshot offers for a check.
_RELEASES: Final = ("1.20", "2.0", "2.1", "2.2", "2.3")
#: Rows before a page are read again, so that pages end here.
MOST_ROWS: Final = 10_000
_MOST_DIFFERENCES: Final = 200

Given = Mapping[str, str]


def _home(snapshots: Snapshots) -> Html:
    return link(snapshots.path, "")


def crumbs_of(snapshots: Snapshots, name: str, *below: Any) -> list[Any]:
    """Return the links to the pages above one of a snapshot, and its own names."""
    return [_home(snapshots), link(name, "snapshot", s=name), *below]


def _freshness(snapshots: Snapshots) -> Html:
    """Return when the directory was listed, if that is some time ago."""
    listing = snapshots.listing
    if listing is None or (listing.age_s < _SHOWN_AGE_S and not listing.problem):
        return Html("")
    words = f"Listed {listing.age_s:,.0f} s ago. "
    words += f"It could not be listed again: {listing.problem}" if listing.problem else "It is being listed again."
    return element("p", words, class_="warn", role="status")


def _failed(snapshots: Snapshots) -> Html:
    """Return the failed checkpoints that the JobManager remembers."""
    if snapshots.overview is None:
        return Html("")
    try:
        failed = snapshots.overview.get().failed
    except StatetoolError as error:
        return join([element("h2", "Failed checkpoints"), element("p", str(error), class_="warn", role="alert")])
    if not failed:
        return element("p", "The JobManager remembers no failed checkpoints.", class_="soft")
    rows = [
        (f.checkpoint_id, f.kind, element("time", moment(f.triggered_ms)), f"{f.duration_ms / 1000:,.1f} s", f.reason)
        for f in reversed(failed)
    ]
    return join(
        [element("h2", "Failed checkpoints"), table(("id", "kind", "triggered", "failed after", "reason"), rows)]
    )


def root_page(snapshots: Snapshots) -> str:
    """Return the snapshots of a directory on a time line, newest first."""
    rows = snapshots.rows()
    listed = []
    before: dict[str, int] = {}
    for name, row in rows:
        total = row.own_bytes + row.shared_bytes
        grown = change(total - before[row.job]) if row.job in before and row.complete else ""
        if row.complete:
            before[row.job] = total
        shown = link(name, "snapshot", s=name) if row.complete else html(name)
        state = element("span", "newest", class_="good") if row.newest else ""
        if not row.complete:
            state = element("span", f"incomplete: {row.problem}", class_="bad")
        written = "" if row.modified_ms is None else element("time", moment(row.modified_ms))
        listed.append((shown, row.checkpoint_id, row.kind, written, size(total), grown, row.job, state))
    names = ("snapshot", "checkpoint", "kind", "written", "size", "growth", "job", "")
    complete = [name for name, row in rows if row.complete]
    compare = ""
    if len(complete) > 1:
        compare = form(
            "diff", {}, _choice("a", "before", complete, complete[-2]), _choice("b", "after", complete, complete[-1]),
            button="Compare",
        )  # fmt: skip
    return document(
        "Snapshots",
        [snapshots.path],
        element("p", several(len(rows), "snapshot"), class_="soft"),
        _freshness(snapshots),
        _time_line(snapshots) if rows else "",
        _failed(snapshots),
        table(names, listed[::-1]) if listed else element("p", "No snapshots below this directory."),
        compare,
    )


def _choice(name: str, label: str, values: list[str], chosen: str) -> Html:
    options = (element("option", v, value=v, selected="" if v == chosen else None) for v in values)
    return element("label", label, element("select", *options, name=name))


def _time_line(snapshots: Snapshots) -> Html:
    """Return the sizes of the snapshots by the time when they were written, as bars with titles."""
    rows = [(name, row) for name, row in snapshots.rows() if row.modified_ms is not None]
    if not rows:
        return Html("")
    times = [row.modified_ms or 0 for _, row in rows]
    first, span = min(times), max(1, max(times) - min(times))
    most = max(1, *(row.own_bytes + row.shared_bytes for _, row in rows))
    bars = []
    for name, row in rows:
        total = row.own_bytes + row.shared_bytes
        height = max(3, round(44 * total / most, 1))
        words = f"{name}, {moment(row.modified_ms or 0)}, {total:,} bytes" + (f": {row.problem}" if row.problem else "")
        at = round(6 + 980 * ((row.modified_ms or 0) - first) / span, 1)
        bar = element(
            "rect", element("title", words), x=at, y=48 - height, width=8, height=height,
            class_=None if row.complete else "bad",
        )  # fmt: skip
        bars.append(element("a", bar, href=address("snapshot", s=name)) if row.complete else bar)
    label = f"sizes of {several(len(rows), 'snapshot')} from {moment(first)} to {moment(max(times))}"
    return element(
        "svg", *bars, viewBox="0 0 1000 50", preserveAspectRatio="none", class_="timeline", role="group",
        **{"aria-label": label},
    )  # fmt: skip


def snapshot_page(snapshots: Snapshots, given: Given) -> str:
    """Return findings, operators with their states as tables, sources and sinks."""
    name = given.get("s") or snapshots.newest()
    savepoint = snapshots.open(name)
    facts = describe(savepoint.inventory, savepoint.execution)
    if release := given.get("flink"):
        facts = replace(facts, check=_checked(savepoint, release), against=f"Flink {release}")
    found = report_findings(facts)
    parts: list[Any] = [summary(facts, found)]
    if found.leading:
        parts += [element("h2", "Findings"), finding_blocks(found.leading)]
    chosen = release if release in _RELEASES else _RELEASES[-1]
    parts.append(
        form("snapshot", {"s": name}, _choice("flink", "Would Flink restore it?", [*_RELEASES], chosen), button="Check")
    )
    if facts.check is not None and not isinstance(facts.check, StatetoolError):
        parts += [element("h2", "Restore"), sections.verdicts(facts.check, facts.against)]
    parts.append(element("p", link("Sizes of keys, key groups and subtasks", "sizes", s=name), " (reads all state)"))
    parts += [element("h2", "Tables"), *_schemas(savepoint, name)]
    parts += [element("h2", "Query"), _query_form(name, "")]
    parts += [element("h2", "Operators"), sizes.operators(facts.operators, facts.statistics)]
    if not isinstance(facts.connections, StatetoolError) and (inner := sections.connections(facts.connections)):
        parts += [element("h2", "Sources and sinks"), inner]
    crumbs = [_home(snapshots), name] if snapshots.is_root else [snapshots.path]
    return document(f"Snapshot {savepoint.checkpoint_id}", crumbs, *parts)


def _checked(savepoint: statetool.Savepoint, release: str) -> Check | StatetoolError:
    try:
        return check_inventories(savepoint.inventory, None, release, None)
    except OptionError:
        raise
    except StatetoolError as error:
        return error


def _schemas(savepoint: statetool.Savepoint, name: str) -> list[Html]:
    """Return the tables of each operator, and the types of its states."""
    shown = []
    for operator in savepoint.operators.values():
        try:
            tables, states = operator.tables, operator.states
        except StatetoolError as error:
            shown.append(element("p", operator_name(operator.inventory.label), f": {error}", class_="warn"))
            continue
        if not tables:
            continue
        rows = []
        for of_operator in tables:
            state = states.get(of_operator)
            types = (
                ""
                if state is None
                else " → ".join(
                    t for t in (state.key_type, state.namespace_type, state.value_type) if t and t != "VoidNamespace"
                )
            )
            kind = "" if state is None else f"{state.scope} {state.kind}" + (", TTL" if state.ttl else "")
            opened = link(of_operator, "table", s=name, o=operator.operator_id, t=of_operator)
            note = "" if state is None or state.readable else element("span", state.reason, class_="warn")
            rows.append((opened, kind, types, note))
        head = [element("h3", operator_name(operator.inventory.label)), table(("table", "kind", "types", ""), rows)]
        if any(s.scope == "keyed" for s in states.values()):
            head.append(_key_form(name, operator.operator_id, ""))
        shown.append(element("section", *head))
    return shown


def _key_form(name: str, operator_id: str, key: str) -> Html:
    hint = "text, number, or JSON"
    return form(
        "key", {"s": name, "o": operator_id}, field("key", "Look up a key", key, placeholder=hint), button="Look up"
    )


def _query_form(name: str, sql: str) -> Html:
    area = element("label", "SQL", element("textarea", sql, name="q", spellcheck="false"), class_="wide")
    return form("sql", {"s": name}, area, button="Run")


def request_of(given: Given) -> ScanRequest:
    """Return the table and keys of an address."""
    key = given.get("key")
    keys = None if not key else [parse_whole_key("key", key)]
    return ScanRequest.of(given.get("t") or "keyed_state", keys=keys, on_error="keep_raw")


def table_page(snapshots: Snapshots, given: Given) -> str:
    """Return a page of rows of a table, of all keys or of one."""
    name = given.get("s") or snapshots.newest()
    savepoint = snapshots.open(name)
    operator = savepoint[given.get("o", "")]
    request = request_of(given)
    start = _start(given.get("start", "0"))
    scan = operator.plan(request)
    rows = first_rows(scan, start + PAGE_ROWS + 1).slice(start)
    shown = [row for batch in rows.to_batches() for row in rows_to_python(batch)]
    more = len(shown) > PAGE_ROWS
    shown = shown[:PAGE_ROWS]
    here = {"s": name, "o": operator.operator_id, "t": request.table, "key": given.get("key") or None}
    names = _without_empty(scan.schema.names, shown)
    keys = _key_links(here, shown) if names[:1] == ["key"] else {}
    pages = element(
        "nav",
        link("Previous rows", "table", **here, start=max(0, start - PAGE_ROWS)) if start else "",
        link("Next rows", "table", **here, start=start + PAGE_ROWS) if more and start + PAGE_ROWS < MOST_ROWS else "",
        link("Download CSV", "download", **here, format="csv"),
        link("Download Parquet", "download", **here, format="parquet"),
        class_="pages",
        **{"aria-label": "rows"},
    )
    filters = "" if "key" not in scan.schema.names else form(
        "table", {**here, "key": None}, field("key", "Only the key", given.get("key")), button="Filter"
    )  # fmt: skip
    types = element(
        "details", element("summary", "Types"), table(("column", "type"), ((f.name, str(f.type)) for f in scan.schema))
    )
    words = f"Rows {start + 1:,} to {start + len(shown):,}" if shown else "No rows."
    crumbs = [_home(snapshots), link(name, "snapshot", s=name), operator_name(operator.inventory.label), request.table]
    return document(
        request.table, crumbs, filters, types, pages, element("p", words, class_="soft"),
        rows_table(names, shown, keys) if shown else "",
    )  # fmt: skip


def _without_empty(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the columns without that of undecoded values if there are none."""
    return [n for n in names if n != UNDECODED or any(row[n] for row in rows)]


def _start(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text[:9]) >= MOST_ROWS:
        raise OptionError(f"start={text!r} is not a row below {MOST_ROWS:,}", hint="filter by a key, or use SQL")
    return int(text)


def _key_links(here: Mapping[str, Any], rows: list[dict[str, Any]]) -> dict[int, Html]:
    links = {}
    for number, row in enumerate(rows):
        if (text := key_text(row["key"])) is not None and len(text) < 1000:
            links[number] = link(cell(row["key"]), "key", s=here["s"], o=here["o"], key=text)
    return links


def key_page(snapshots: Snapshots, given: Given) -> str:
    """Return all state and timers of one key."""
    name = given.get("s") or snapshots.newest()
    operator = snapshots.open(name)[given.get("o", "")]
    text = given.get("key", "")
    content = operator.get(parse_whole_key("key", text), on_error="keep_raw")
    parts: list[Any] = [_key_form(name, operator.operator_id, text)]
    group = "unknown" if content.key_group is None else f"{content.key_group:,}"
    parts.append(element("p", f"Key group {group}", class_="soft"))
    if not content.found:
        parts.append(element("p", "The operator has no state of this key.", class_="warn"))
    if content.states:
        rows = [
            {"state": s.state, "kind": s.kind, "namespace": s.namespace, "value": s.value, "companions": dict(s.companions),
             "undecoded": dict(s.undecoded)}
            for s in content.states
        ]  # fmt: skip
        used = [n for n in rows[0] if any(row[n] not in (None, {}) for row in rows) or n == "value"]
        parts += [element("h2", "States"), rows_table(used, rows)]
    if content.timers:
        timers = [
            {
                "domain": t.domain,
                "service": t.service,
                "namespace": t.namespace,
                "timestamp": t.timestamp,
                "time": t.time,
            }
            for t in content.timers
        ]
        parts += [element("h2", "Timers"), rows_table(list(timers[0]), timers)]
    crumbs = [_home(snapshots), link(name, "snapshot", s=name), operator_name(operator.inventory.label), "key"]
    return document("Key", crumbs, *parts)


def sql_page(snapshots: Snapshots, given: Given) -> str:
    """Return the first rows of a query."""
    name, sql = given.get("s") or snapshots.newest(), given.get("q", "")
    savepoint = snapshots.open(name)
    parts: list[Any] = [_query_form(name, sql)]
    if sql.strip():
        try:
            schema, rows, more = run_query(savepoint, sql)
        except StatetoolError as error:
            parts.append(element("p", str(error), class_="bad", role="alert"))
        else:
            words = several(len(rows), "row") if not more else f"the first {several(len(rows), 'row')}"
            parts += [element("p", words, class_="soft"), rows_table(_without_empty(schema, rows), rows)]
    else:
        tables = list(islice(table_names(savepoint), 200))
        parts.append(element("p", "Tables: ", ", ".join(tables), class_="soft"))
    return document("Query", [_home(snapshots), link(name, "snapshot", s=name), "query"], *parts)


def diff_page(snapshots: Snapshots, given: Given) -> str:
    """Return the differences between two snapshots: counts by state, then the first ones before and after."""
    before, after = given.get("a", ""), given.get("b", "")
    comparison = snapshots.open(before).diff(snapshots.open(after))
    counts = comparison.summary()
    answer = Differences(
        equal=comparison.equal, structure=comparison.structure, counts=counts, unread=comparison.unread
    )
    parts: list[Any] = [sections.differences(answer, after, before)]
    rows = comparison.first(_MOST_DIFFERENCES).to_pylist()
    if rows:
        listed = [
            (
                r["operator_name"] or r["operator"],
                r["state"],
                r["key"],
                " ".join(str(r[n]) for n in ("namespace", "map_key", "list_index") if r[n] is not None),
                element("span", r["change"], class_=r["change"] if r["change"] in _CHANGES else None),
                "" if r["before"] is None else element("span", r["before"], class_="removed"),
                "" if r["after"] is None else element("span", r["after"], class_="added"),
            )
            for r in rows
        ]
        names = ("operator", "state", "key", "place", "change", "before", "after")
        parts += [element("h2", f"First {several(len(rows), 'difference')}"), table(names, listed)]
    crumbs = [_home(snapshots), link(before, "snapshot", s=before), link(after, "snapshot", s=after)]
    return document("Differences", crumbs, *parts)


_CHANGES: Final = frozenset({"added", "removed", "changed"})


def error_page(snapshots: Snapshots, text: str) -> str:
    """Return a page with an error."""
    return document("Error", [_home(snapshots)], element("p", text, class_="bad", role="alert"))
