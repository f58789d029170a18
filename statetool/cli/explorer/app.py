"""The web application: its routes, look-ups as JSON, downloads, and errors as pages or JSON."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterator
from http import HTTPStatus
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

import statetool
from statetool.cli.explorer import pages
from statetool.cli.explorer.guard import Admission, Guard
from statetool.cli.explorer.long_reads import LongReads
from statetool.cli.explorer.opened import Snapshots
from statetool.cli.explorer.style import SHEET
from statetool.cli.output import JSON_VERSION, json_text
from statetool.errors import (
    EncodeError,
    MissingKeyError,
    OptionError,
    SnapshotNotFoundError,
    StatetoolError,
    UnknownNameError,
)
from statetool.tables.export.result_files import csv_lines
from statetool.tables.keys.text import parse_whole_key
from statetool.types.operators import operator_fields

_TYPES: Final = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}
#: Attempts to follow the newest checkpoint, while Flink deletes those before it.
_ATTEMPTS: Final = 4
#: Longer answers in JSON are refused.
_MOST_ANSWER: Final = 16 << 20


def application(snapshots: Snapshots, admission: Admission) -> ASGIApp:
    """Return the application."""
    own = _Routes(snapshots)
    made: dict[str, Callable[[Snapshots, dict[str, str]], str]] = {
        "/snapshot": pages.snapshot_page,
        "/table": pages.table_page,
        "/key": pages.key_page,
        "/sql": pages.sql_page,
        "/diff": pages.diff_page,
    }
    app = Starlette(
        routes=[
            Route("/", own.home),
            Route("/style.css", _style),
            *(Route(path, own.page(make)) for path, make in made.items()),
            Route("/sizes", own.sizes),
            Route("/download", own.download),
            Route("/api/snapshots", own.api(own.list_snapshots)),
            Route("/api/get", own.api(own.look_up)),
        ],
    )
    # The outermost layer, so that answers to unexpected errors have its headers, too.
    return Guard(app, admission)


def _style(request: Request) -> Response:
    return PlainTextResponse(SHEET, media_type="text/css", headers={"Cache-Control": "private, max-age=3600"})


def _status(error: StatetoolError) -> HTTPStatus:
    match error:
        case MissingKeyError() | UnknownNameError() | SnapshotNotFoundError():
            return HTTPStatus.NOT_FOUND
        case OptionError() | EncodeError():
            return HTTPStatus.BAD_REQUEST
    return HTTPStatus.INTERNAL_SERVER_ERROR


def _parameters(request: Request) -> dict[str, str]:
    return dict(request.query_params)


class _PageInParts(StreamingResponse):
    """A page that is sent while it is made. Its generator is closed if the browser stops loading it."""

    def __init__(self, parts: Generator[str, None, None]) -> None:
        super().__init__(parts, media_type="text/html")
        self._parts = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._parts.close()


class _Routes:
    """Handlers of requests. They are not coroutines, so that Starlette runs them in threads."""

    def __init__(self, snapshots: Snapshots) -> None:
        self._snapshots = snapshots
        self._reads = LongReads()

    def home(self, request: Request) -> Response:
        """Return the directory, or the only snapshot."""
        if not self._snapshots.is_root:
            return RedirectResponse("/snapshot", HTTPStatus.SEE_OTHER)
        return self._page(lambda: pages.root_page(self._snapshots))

    def page(self, make: Callable[[Snapshots, dict[str, str]], str]) -> Callable[[Request], Response]:
        """Return the handler of a page."""

        def handle(request: Request) -> Response:
            return self._page(lambda: make(self._snapshots, _parameters(request)))

        return handle

    def _page(self, make: Callable[[], str]) -> Response:
        try:
            return HTMLResponse(make())
        except StatetoolError as error:
            return HTMLResponse(pages.error_page(self._snapshots, str(error)), _status(error))

    def sizes(self, request: Request) -> Response:
        """Return the sizes of all states, keys and subtasks, after a read of all state."""
        try:
            name = request.query_params.get("s") or self._snapshots.newest()
            crumbs = pages.crumbs_of(self._snapshots, name, "sizes")
            return _PageInParts(self._reads.sizes_page(self._snapshots, name, crumbs))
        except StatetoolError as error:
            return HTMLResponse(pages.error_page(self._snapshots, str(error)), _status(error))

    def download(self, request: Request) -> Response:
        """Return all rows of a table, batch by batch."""
        given = _parameters(request)
        form = given.get("format", "")
        try:
            if form not in _TYPES:
                raise OptionError(f"format={form!r} is not valid", hint="csv or parquet")
            scanned = pages.request_of(given)
            savepoint = self._snapshots.open(given.get("s") or self._snapshots.newest())
            reader = savepoint[given.get("o", "")].plan(scanned).reader()
        except StatetoolError as error:
            return HTMLResponse(pages.error_page(self._snapshots, str(error)), _status(error))
        content: Iterator[Any] = _parquet(reader) if form == "parquet" else (f"{line}\n" for line in csv_lines(reader))
        headers = {"Content-Disposition": f'attachment; filename="table.{form}"'}
        return StreamingResponse(content, media_type=_TYPES[form], headers=headers)

    def api(self, answer: Callable[[Request, str], Response]) -> Callable[[Request], Response]:
        """Return the handler of an answer as JSON about a snapshot, by default about the newest one."""

        def handle(request: Request) -> Response:
            chosen = request.query_params.get("s")
            try:
                for attempt in range(_ATTEMPTS):
                    name = chosen or self._snapshots.newest()
                    try:
                        return answer(request, name)
                    except SnapshotNotFoundError:
                        # Flink has deleted it since it was listed or opened.
                        self._snapshots.forget(name)
                        if chosen or attempt + 1 == _ATTEMPTS:
                            raise
            except StatetoolError as error:
                return _json({"error": str(error)}, _status(error))
            raise AssertionError("the last attempt returns or raises")

        return handle

    def list_snapshots(self, request: Request, name: str) -> Response:
        """Return the snapshots."""
        rows = [
            {"name": of, "checkpoint_id": row.checkpoint_id, "complete": row.complete, "newest": row.newest,
             "modified_ms": row.modified_ms, "problem": row.problem}
            for of, row in self._snapshots.rows()
        ]  # fmt: skip
        listing = self._snapshots.listing
        age = 0.0 if listing is None else round(listing.age_s, 1)
        return _json({"snapshots": rows, "newest": name, "age_s": age})

    def look_up(self, request: Request, name: str) -> Response:
        """Return the state of one key, with the id of the checkpoint as its ETag."""
        given = _parameters(request)
        if "o" not in given or "key" not in given:
            raise OptionError(
                "o= (an operator) and key= are needed", hint="for example /api/get?o=orders&key=customer-7"
            )
        savepoint = self._snapshots.open(name)
        tag = _tag(savepoint)
        if tag in [part.strip().removeprefix("W/") for part in request.headers.get("if-none-match", "").split(",")]:
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"ETag": tag})
        operator = savepoint[given["o"]]
        state = given.get("state")
        content = operator.get(parse_whole_key("key", given["key"]), None if state is None else [state])
        head = {"snapshot": name, "checkpoint_id": savepoint.checkpoint_id, **operator_fields(operator.inventory.label)}
        status = HTTPStatus.OK if content.found else HTTPStatus.NOT_FOUND
        return _json({**head, **content.record()}, status, {"ETag": tag, "Cache-Control": "private, no-cache"})


def _tag(savepoint: statetool.Savepoint) -> str:
    """Return the ETag of a snapshot: its checkpoint id, and a hash of its path."""
    path = hashlib.sha256(savepoint.path.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f'"{savepoint.checkpoint_id}-{path}"'


def _json(
    answer: dict[str, Any], status: HTTPStatus = HTTPStatus.OK, headers: dict[str, str] | None = None
) -> Response:
    text = json_text({"json_version": JSON_VERSION, **answer}, ascii_only=True)
    if len(text) > _MOST_ANSWER:
        words = f"the answer has {len(text):,} bytes, more than {_MOST_ANSWER:,}. add state=NAME, or use statetool get"
        return _json({"error": words}, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    return Response(text + "\n", status, headers, media_type="application/json")


class _Pieces:
    """A file in memory whose bytes are taken while it is written."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def write(self, data: Any) -> int:
        piece = bytes(data)
        self._parts.append(piece)
        self._size += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        """Do nothing: bytes are taken."""

    def close(self) -> None:
        """Do nothing: bytes are taken."""

    def take(self) -> bytes:
        taken, self._parts = b"".join(self._parts), []
        return taken


def _parquet(reader: pa.RecordBatchReader) -> Iterator[bytes]:
    pieces = _Pieces()
    with pq.ParquetWriter(pa.PythonFile(pieces, mode="w"), reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)
            yield pieces.take()
    yield pieces.take()
