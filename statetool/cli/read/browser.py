"""A read-only terminal browser of one snapshot: operators and tables on the left, rows on the right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar, Final

from rich.markup import escape
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import DataTable, Footer, Header, Input, Static, Tree
from textual.worker import get_current_worker

from statetool import Operator, Savepoint
from statetool.cli.shown_values import shown_text
from statetool.errors import StatetoolError, printable, several
from statetool.tables.request import ScanRequest
from statetool.types.operators import display_name

#: Number of rows read at once.
PAGE: Final = 200
#: Minimum number of columns that a terminal shows at once. Cells are cut to make room for them. A single opened row shows all columns.
_COLUMNS_SEEN: Final = 3
_LEAST_CELL: Final = 16
_STATES: Final = "states"
_KEYS: Final = {
    "Enter": "open an operator, a table, or a row",
    "Tab": "go to the other side",
    "m": "read more rows",
    "/": "show only rows that contain a text, of those read so far; Escape removes it",
    "s": "sort the rows read so far by the next column",
    "Escape": "leave a row or this page",
    "q": "quit",
}


class Browser(App[None]):
    """Shows one snapshot.

    Parameters
    ----------
    savepoint
        The snapshot; it needs no session.
    """

    CSS = """
    Tree { width: 36; max-width: 33%; border-right: solid $primary; }
    #about { height: auto; max-height: 8; padding: 0 1; color: $text-muted; }
    DataTable { height: 1fr; }
    #filter { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "more", "More rows"),
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("s", "sort", "Sort"),
        Binding("question_mark", "help", "Help", key_display="?"),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(self, savepoint: Savepoint) -> None:
        super().__init__()
        self._savepoint = savepoint
        self._rows: Iterator[dict[str, Any]] = iter(())
        self._read_rows: list[dict[str, Any]] = []
        #: Those of the rows read so far that contain the filter, in the order of the table.
        self._shown: list[dict[str, Any]] = []
        self._is_whole = False
        self._sorted_by: int | None = None
        self._lines: tuple[str, ...] = ()
        self.title = printable(savepoint.path)
        self.sub_title = f"checkpoint {savepoint.checkpoint_id}"

    def compose(self) -> ComposeResult:
        """Lay out the screen."""
        yield Header()
        with Horizontal():
            yield Tree[tuple[str, str]]("operators")
            with Vertical():
                yield Static(id="about")
                yield DataTable[str](cursor_type="row", zebra_stripes=True)
                yield Input(id="filter", placeholder="text that rows contain; Enter keeps it, Escape removes it")
        yield Footer()

    def on_mount(self) -> None:
        """List the operators. The tables of an operator are searched when it is opened."""
        tree = self.query_one(Tree)
        tree.root.expand()
        for row in self._savepoint.metadata_rows("operators"):
            if row.state_bytes:
                tree.root.add(_label(display_name(row.operator)), data=(row.operator, ""))
        self._about(
            f"{several(len(self._savepoint.operators), 'operator')}; press Enter to open an operator, then a table"
        )
        tree.focus()

    def on_tree_node_expanded(self, event: Tree.NodeExpanded[tuple[str, str]]) -> None:
        """Add the tables of an operator."""
        node = event.node
        if node.data is None or node.children:
            return
        try:
            names = [_STATES, *self._savepoint[node.data[0]].tables]
        except StatetoolError as error:
            self._about(str(error))
            return
        for name in names:
            node.add_leaf(_label(name), data=(node.data[0], name))

    def on_tree_node_selected(self, event: Tree.NodeSelected[tuple[str, str]]) -> None:
        """Show a table."""
        if event.node.data is None or not event.node.data[1]:
            return
        operator, table = event.node.data
        self._read_rows, self._shown, self._sorted_by = [], [], None
        self._hide_filter()
        self.query_one(DataTable).clear(columns=True)
        self._about(f"{display_name(operator)} {table}: reading ...")
        self._open(operator, table)

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Show a single row completely."""
        if event.cursor_row < len(self._shown):
            self.push_screen(_Card("Row", self._shown[event.cursor_row]))

    def action_more(self) -> None:
        """Read the next rows."""
        self._read()

    def action_help(self) -> None:
        """Show what the keys do."""
        self.push_screen(_Card("Keys", _KEYS))

    def action_filter(self) -> None:
        """Ask for a text that the shown rows contain."""
        given = self.query_one("#filter", Input)
        given.display = True
        given.focus()

    def action_sort(self) -> None:
        """Sort the rows read so far by the next column, after the last one as they are stored."""
        columns = len(self.query_one(DataTable).columns)
        following = 0 if self._sorted_by is None else self._sorted_by + 1
        self._sorted_by = following if following < columns else None
        self._show_rows()

    def on_input_changed(self) -> None:
        """Show the rows that contain the text."""
        self._show_rows()

    def on_input_submitted(self) -> None:
        """Go to the rows that were found."""
        self.query_one(DataTable).focus()

    def on_key(self, event: Key) -> None:
        """Remove the filter."""
        if event.key == "escape" and self.query_one("#filter", Input).display:
            self._hide_filter()
            self._show_rows()
            self.query_one(DataTable).focus()

    def _hide_filter(self) -> None:
        given = self.query_one("#filter", Input)
        with given.prevent(Input.Changed):
            given.value = ""
        given.display = False

    @work(thread=True, exclusive=True)
    def _open(self, operator: str, table: str) -> None:
        """Start to read a table in a thread, and stop reading the previous table."""
        opened = self._savepoint[operator]
        try:
            self._rows = _rows(opened, table)
            self._take(about_table(opened, table))
        except StatetoolError as error:
            self.call_from_thread(self._about, str(error))

    @work(thread=True, exclusive=True)
    def _read(self) -> None:
        try:
            self._take(None)
        except StatetoolError as error:
            self.call_from_thread(self._about, str(error))

    def _take(self, about: Sequence[str] | None) -> None:
        page = list(islice(self._rows, PAGE))
        if not get_current_worker().is_cancelled:
            self.call_from_thread(self._add, page, about)

    def _add(self, page: list[dict[str, Any]], about: Sequence[str] | None) -> None:
        table = self.query_one(DataTable)
        if page and not table.columns:
            table.add_columns(*map(_label, page[0]))
        self._read_rows += page
        self._is_whole = len(page) < PAGE
        lines = self._lines[:-1] if about is None else about
        self._about(*lines, "")
        self._show_rows()

    def _show_rows(self) -> None:
        """Show the rows read so far that contain the filter, sorted."""
        table, text = self.query_one(DataTable), self.query_one("#filter", Input).value.lower()
        found = [row for row in self._read_rows if not text or any(text in shown_text(v).lower() for v in row.values())]
        order = ""
        if self._sorted_by is not None and self._read_rows:
            column = list(self._read_rows[0])[self._sorted_by]
            found.sort(key=lambda row: _rank(row[column]))
            order = f", sorted by {column}"
        kept, self._shown = self._shown, found
        if kept != found[: len(kept)]:
            table.clear()
            kept = []
        cell_width = max(_LEAST_CELL, table.size.width // _COLUMNS_SEEN - 2)
        for row in found[len(kept) :]:
            table.add_row(*(escape(_cut(shown_text(v), cell_width)) for v in row.values()))
        contain = f"{several(len(found), 'row')} of {len(self._read_rows)} contain {text!r}" if text else ""
        hint = "end of table" if self._is_whole else "press m for more"
        self._about(*self._lines[:-1], f"{contain or several(len(found), 'row')}{order}, {hint}")

    def _about(self, *lines: str) -> None:
        self._lines = lines
        self.query_one("#about", Static).update("\n".join(map(_label, lines)))


class _Card(ModalScreen[None]):
    """Names and values, such as the columns of a row."""

    CSS = "VerticalScroll { margin: 2 4; padding: 1 2; border: round $primary; background: $surface; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,enter,q", "dismiss", "Back")]

    def __init__(self, title: str, values: Mapping[str, Any]) -> None:
        super().__init__()
        self._title = title
        self._values = values

    def compose(self) -> ComposeResult:
        """Lay out the screen."""
        with VerticalScroll() as card:
            card.border_title = self._title
            card.border_subtitle = "Escape: back, arrows and Page Down: scroll"
            for name, value in self._values.items():
                yield Static(f"[b]{_label(name)}[/b]\n{escape(shown_text(value))}\n")


def _rows(operator: Operator, table: str) -> Iterator[dict[str, Any]]:
    """Yield rows in readable form. Values that cannot be decoded stay bytes."""
    if table == _STATES:
        yield from (
            {"name": name, "kind": s.kind, "key": s.key_type, "namespace": s.namespace_type, "value": s.value_type}
            | {"ttl": s.ttl, "remarks": s.reason}
            for name, s in operator.states.items()
        )
        return
    from statetool.columns.python_values import rows_to_python

    for batch in operator.plan(ScanRequest.of(table, on_error="keep_raw")).batches():
        yield from rows_to_python(batch)


def about_table(operator: Operator, table: str) -> list[str]:
    """Return lines that describe a table, and the reasons why some of its values stay bytes."""
    from statetool.connectors.hints import bytes_hints

    state = operator.states.get(table)
    title = f"{operator.inventory.label.display} {table}"
    if state is not None:
        title += f": {state.kind} of {state.value_type}"
    return [title, *bytes_hints(operator.inventory, operator.states, table)]


def _rank(value: Any) -> tuple[bool, bool, Any]:
    """Return the key by which rows are sorted: numbers, then texts, then missing values."""
    is_number = isinstance(value, int | float)
    return value is None, not is_number, value if is_number else shown_text(value)


def _label(text: str) -> str:
    """Return text escaped for the terminal and for rich's markup."""
    return escape(printable(text))


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
