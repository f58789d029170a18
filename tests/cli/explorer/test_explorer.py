"""The explorer: its pages, look-ups and downloads, who is admitted, and that nothing is written or read outside of the snapshots."""

from __future__ import annotations

import hashlib
import http.client
import io
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest

import statetool
from statetool.cli.assistants.bounds import Root
from statetool.cli.explorer import app, latest, long_reads
from statetool.cli.explorer.latest import Latest
from statetool.cli.explorer.server import read_token
from statetool.errors import OptionError, StatetoolError
from tests.support.servers.explorer import Answer, Explorer, exploring
from tests.support.snapshots.build import STRING
from tests.support.snapshots.canonical import Subtask, composite_key, encoded, group_of, keyed, savepoint, serializer
from tests.support.zoo import ZOO

DEMO: Final = Path(statetool.__file__).parent / "demo" / "savepoint"
PATHS: Final = ("/", "/snapshot", "/table?o=orders", "/key?o=orders&key=Ada", "/sql", "/diff?a=1&b=2", "/download?o=orders", "/sizes",
                "/api/get?o=orders&key=Ada", "/api/snapshots", "/style.css", "/nothing")  # fmt: skip
SCRIPT: Final = "</td><script>alert(1)</script><img src=x onerror=alert(2)>\"'"


def contents(folder: Path) -> dict[str, str]:
    return {str(f): hashlib.sha256(f.read_bytes()).hexdigest() for f in sorted(folder.rglob("*")) if f.is_file()}


@pytest.fixture(scope="module")
def demo() -> Iterator[Explorer]:
    before = contents(DEMO)
    with exploring(str(DEMO), is_root=False) as explorer:
        yield explorer
    assert contents(DEMO) == before


def with_points(folder: Path, number: int, points: int) -> None:
    """Write the demo as a checkpoint, with other points of a key."""
    statetool.set_values(
        str(DEMO), str(folder), uid="orders", key="Ada", values={"points": points}, checkpoint_id=number
    )


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a directory of three checkpoints, whose ids ascend."""
    folder = tmp_path_factory.mktemp("root") / "checkpoints"
    folder.mkdir()
    for number in (1, 2, 3):
        with_points(folder / f"chk-{number}", number, 64)
    (folder.parent / "secret.txt").write_text("secret")
    shutil.copytree(DEMO, folder.parent / "outside")
    return folder


@pytest.fixture(scope="module")
def served(root: Path) -> Iterator[Explorer]:
    with exploring(str(root), is_root=True) as explorer:
        yield explorer


# ---- admission ---------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_answered_without_the_token(demo: Explorer, path: str) -> None:
    for token in (None, "x", demo.token[:-1], demo.token + "x"):
        answer = demo.get(path, token=token)
        assert answer.status == 401
        assert b"Ada" not in answer.body
    assert demo.get(path, token=None, Cookie=f"statetool-{demo.port}={demo.token[:-1]}").status == 401
    assert demo.get(path + ("&" if "?" in path else "?") + "token=wrong").status == 401


def test_the_token_in_the_address_becomes_a_cookie(demo: Explorer) -> None:
    answer = demo.get(f"/table?o=orders&token={demo.token}&key=Ada", token=None)
    assert (answer.status, answer.headers["location"]) == (303, "/table?o=orders&key=Ada")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert demo.get("/table?o=orders", token=None, Cookie=cookie.partition(";")[0]).status == 200
    for path in ("//evil.example/", "/\\evil.example/", "///evil.example"):
        away = demo.get(f"{path}?token={demo.token}", token=None).headers["location"]
        assert away.startswith("/")
        assert away[1:2] not in ("/", "\\")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1:{port}.evil.example", ""]
)
def test_other_host_names_are_refused(demo: Explorer, host: str) -> None:
    """With DNS rebinding, the address of another site's name becomes 127.0.0.1."""
    answer = demo.get("/api/get?o=orders&key=Ada", Host=host.format(port=demo.port))
    assert answer.status in (400, 421)
    assert b"Ada" not in answer.body
    assert demo.get("/api/get?o=orders&key=Ada", Host=f"localhost:{demo.port}").status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "unknown"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
    ],
)
def test_requests_of_other_sites_are_refused(demo: Explorer, headers: dict[str, str]) -> None:
    for path in ("/api/get?o=orders&key=Ada", "/", f"/?token={demo.token}"):
        answer = demo.get(path, **headers)
        assert answer.status == 403
        assert "set-cookie" not in answer.headers
    assert demo.get("/", Sec_Fetch_Site="same-origin", Origin=f"http://127.0.0.1:{demo.port}").status == 303


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_only_get_is_allowed(demo: Explorer, method: str) -> None:
    for path in PATHS:
        assert demo.get(path, method=method).status == 405


def test_every_answer_has_the_policy(demo: Explorer) -> None:
    refused = [demo.get("/", token=None), demo.get("/", Host="evil.example"), demo.get("/", method="POST")]
    for answer in (*refused, *map(demo.get, PATHS), demo.get("/table?o=none"), demo.get("/sql?q=" + "x" * 20_000)):
        assert answer.headers["content-security-policy"].startswith("default-src 'none'; style-src 'self'")
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in answer.headers
    assert demo.get("/sql?q=" + "x" * 20_000).status == 414


# ---- limits ------------------------------------------------------------------------------------


def test_too_many_requests_are_answered_with_429() -> None:
    with exploring(str(DEMO), is_root=False, per_second=0.2) as explorer:
        statuses = [explorer.get("/style.css").status for _ in range(4)]
        limited = explorer.get("/api/get?o=orders&key=Ada")
        refused = explorer.get("/style.css", token="wrong")
    assert statuses == [200, 429, 429, 429]
    assert (limited.status, refused.status) == (429, 401)
    assert 1 <= int(limited.headers["retry-after"]) <= 5
    assert "more than 0.2 requests per second (--rate)" in limited.text


def test_large_requests_and_answers_are_answered_with_413(demo: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    for headers in ({"Content_Length": "5"}, {"Transfer_Encoding": "chunked"}):
        answer = demo.get("/api/get?o=orders&key=Ada", **headers)
        assert answer.status == 413
        assert "no body" in answer.text
    monkeypatch.setattr(app, "_MOST_ANSWER", 300)
    answer = demo.get("/api/get?o=orders&key=Ada")
    assert answer.status == 413
    assert "state=NAME" in json.loads(answer.text)["error"]
    assert demo.get("/api/get?o=orders&key=Bob").status == 404


def test_a_token_for_look_ups_opens_no_page(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("0123456789abcdef\n")
    with exploring(str(DEMO), is_root=False, api_token=read_token(str(file))) as explorer:
        assert explorer.get("/api/get?o=orders&key=Ada", token="0123456789abcdef").status == 200
        assert explorer.get("/api/get?o=orders&key=Ada", token="0123456789abcdeF").status == 401
        for path in ("/", "/snapshot", "/table?o=orders", "/apix", "/?token=0123456789abcdef"):
            assert explorer.get(path, token="0123456789abcdef").status == 401
        cookie = f"statetool-{explorer.port}=0123456789abcdef"
        assert explorer.get("/api/get?o=orders&key=Ada", token=None, Cookie=cookie).status == 401
    for text in ("short", "", "with a space in it and long enough", "ü" * 20):
        file.write_text(text)
        with pytest.raises(OptionError, match="the token in"):
            read_token(str(file))


def test_tls(tmp_path: Path) -> None:
    file = tmp_path / "server.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
               "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(file), "-out", str(tmp_path / "cert.pem")]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    file.write_text(file.read_text() + (tmp_path / "cert.pem").read_text())
    with exploring(str(DEMO), is_root=False, cert=str(file)) as explorer:
        assert explorer.address.startswith("https://127.0.0.1:")
        assert explorer.get("/snapshot", Origin=f"https://127.0.0.1:{explorer.port}").status == 200
        assert explorer.get("/snapshot", Origin=f"http://127.0.0.1:{explorer.port}").status == 403
        entered = explorer.get(f"/?token={explorer.token}", token=None)
        assert "secure" in entered.headers["set-cookie"].lower()
    for options in ({"tls_cert": str(file)}, {"tls_key": str(file)}, {"tls_cert": __file__, "tls_key": str(file)}):
        with pytest.raises(OptionError, match="TLS"), exploring(str(DEMO), is_root=False, **options):
            pass


# ---- slow directories --------------------------------------------------------------------------


def test_a_slow_listing_delays_no_other_request(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first page waits for the listing. Later ones show the last one, and how old it is."""
    released, calls = threading.Event(), []
    list_rows = Root.rows

    def slow(self: Root) -> object:
        calls.append(1)
        if len(calls) > 1:
            assert released.wait(60)
        return list_rows(self)

    monkeypatch.setattr(Root, "rows", slow)
    with exploring(str(root), is_root=True) as explorer:
        assert "chk-3" in explorer.get("/").text
        monkeypatch.setattr(latest, "FRESH_S", 0.0)
        monkeypatch.setattr("statetool.cli.explorer.pages._SHOWN_AGE_S", 0.0)
        page = explorer.get("/").text
        assert "It is being listed again" in page
        assert "chk-3" in page
        assert json.loads(explorer.get("/api/snapshots").text)["age_s"] >= 0.5
        assert explorer.get("/api/get?o=orders&key=Ada&s=chk-1").status == 200
        assert len(calls) == 2
        released.set()


def test_a_directory_that_cannot_be_listed_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    list_rows, broken = Root.rows, threading.Event()

    def fail(self: Root) -> object:
        if broken.is_set():
            raise StatetoolError("the store does not answer")
        return list_rows(self)

    monkeypatch.setattr(Root, "rows", fail)
    monkeypatch.setattr(latest, "FRESH_S", 0.0)
    monkeypatch.setattr(latest, "_WAIT_S", 60.0)
    with exploring(str(root), is_root=True) as explorer:
        assert explorer.get("/").status == 200
        broken.set()
        page = explorer.get("/")
        assert page.status == 200
        assert "It could not be listed again: the store does not answer" in page.text
    with exploring(str(root), is_root=True) as explorer:
        assert "the store does not answer" in explorer.get("/").text


def test_what_was_forgotten_is_read_again_before_anyone_gets_it() -> None:
    answers = iter([1, 2, 3])
    begun, go = threading.Event(), threading.Event()

    def read() -> int:
        begun.set()
        assert go.wait(60)
        return next(answers)

    own = Latest(read)
    got: list[int] = []
    waiting = threading.Thread(target=lambda: got.append(own.get()))
    waiting.start()
    assert begun.wait(60)
    own.forget()
    go.set()
    waiting.join(60)
    assert got == [2]


# ---- files -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "page",
    [
        "/snapshot?",
        "/table?o=orders&",
        "/key?o=orders&key=Ada&",
        "/sql?q=SELECT+1&",
        "/download?o=orders&format=csv&",
        "/sizes?",
        "/api/get?o=orders&key=Ada&",
    ],
)
def test_no_snapshot_outside_of_the_directory(served: Explorer, root: Path, page: str) -> None:
    outside = (
        "../outside",
        "..",
        "/etc",
        f"{root}/../outside",
        "chk-1/../../outside",
        "~",
        "file:///etc",
        "%2e%2e/outside",
    )
    for name in outside:
        answer = served.get(f"{page}s={quote(name, safe='')}")
        assert answer.status in (400, 404)
        assert b"London" not in answer.body
    assert served.get(f"{page}s=chk-1").status == 200


def test_a_link_out_of_the_directory_is_not_followed(served: Explorer, root: Path) -> None:
    link = root / "linked"
    link.symlink_to(root.parent / "outside")
    try:
        assert served.get("/api/get?o=orders&key=Ada&s=linked").status == 400
    finally:
        link.unlink()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('{secret}')",
        "SELECT * FROM read_csv('{secret}')",
        "SELECT * FROM '{secret}'",
        "SELECT * FROM glob('{folder}/*')",
        "SELECT content FROM read_blob('{secret}')",
        "WITH a AS (SELECT * FROM read_text('{secret}')) SELECT * FROM a",
        "COPY orders_points TO '{folder}/written.csv'",
        "COPY (SELECT 1) TO '{folder}/written.csv'",
        "EXPORT DATABASE '{folder}/written'",
        "ATTACH '{folder}/written.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "RESET enable_external_access",
        "SELECT 1; COPY (SELECT 1) TO '{folder}/written.csv'",
        "CREATE TABLE t AS SELECT 1",
        "PRAGMA database_list",
        "CALL pragma_version()",
    ],
)
def test_queries_read_and_write_no_files(served: Explorer, root: Path, sql: str) -> None:
    before = contents(root.parent)
    answer = served.get("/sql?q=" + quote(sql.format(secret=root.parent / "secret.txt", folder=root.parent)))
    assert 'role="alert"' in answer.text
    assert ">secret<" not in answer.text
    assert contents(root.parent) == before


def test_queries(served: Explorer) -> None:
    sql = "SELECT key, points * 2 AS twice FROM orders_keyed_state WHERE key = 'Ada'"
    answer = served.get("/sql?q=" + quote(sql))
    assert '<data value="128">128</data>' in answer.text
    assert "the first 500 rows" in served.get("/sql?q=" + quote("SELECT * FROM range(5000)")).text
    assert "orders_keyed_state" in served.get("/sql").text


# ---- markup ------------------------------------------------------------------------------------


class Tags(HTMLParser):
    """The tags and attributes of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}
        for name, value in attrs:
            assert name not in ("href", "action") or (value or "").startswith(("/", "#"))


def test_names_keys_and_values_are_no_markup(tmp_path: Path) -> None:
    key = serializer(STRING)
    group = group_of(key, SCRIPT, 128)
    entry = (SCRIPT, group, composite_key(encoded(key, SCRIPT)), encoded(key, SCRIPT * 200))
    folder = tmp_path / "chk-1"
    folder.mkdir()
    savepoint(folder, [Subtask(key=STRING, states=[keyed(SCRIPT, "value", STRING)], entries=[entry])])
    shutil.copytree(folder, tmp_path / "<script>alert(3)")
    operator = next(iter(statetool.load(str(folder)).operators.values())).operator_id
    text = quote(SCRIPT, safe="")
    asked = quote(json.dumps(SCRIPT))
    with exploring(str(tmp_path), is_root=True) as explorer:
        pages = [
            explorer.get(path)
            for path in (
                "/", "/snapshot?s=chk-1", f"/table?s=chk-1&o={operator}", f"/table?s=chk-1&o={operator}&t={text}",
                f"/table?s=chk-1&o={operator}&t={text}&key={asked}", f"/key?s=chk-1&o={operator}&key={asked}",
                f"/table?s=chk-1&o={text}", f"/table?s=chk-1&o={operator}&t={text}x", f"/key?s=chk-1&o={operator}&key={text}",
                f"/sql?s=chk-1&q={text}", f"/snapshot?s={text}", "/diff?a=chk-1&b=" + quote("<script>alert(3)"),
                f"/key?s=chk-1&o={operator}&key=%00%1b%E2%80%AE", "/sizes?s=chk-1", f"/sizes?s={text}",
                "/snapshot?s=chk-1&flink=2.3", f"/snapshot?s=chk-1&flink={text}",
            )
        ]  # fmt: skip
        looked_up = explorer.get(f"/api/get?s=chk-1&o={operator}&key={asked}")
    assert json.loads(looked_up.text)["states"][0]["value"] == SCRIPT * 200
    assert looked_up.headers["content-type"] == "application/json"
    for page in pages:
        tags = Tags(page.text)
        assert not tags.names & {"script", "img", "iframe", "object", "embed", "base", "style"}
        assert not {name for name in tags.attributes if name.startswith("on") or name == "style"}
    assert [p.status for p in pages[:6]] == [200] * 6
    assert all("alert(1)" in page.text for page in pages[1:6])


# ---- pages -------------------------------------------------------------------------------------


def test_the_directory(served: Explorer) -> None:
    page = served.get("/").text
    assert page.index(">chk-3<") < page.index(">chk-2<") < page.index(">chk-1<")
    assert "newest" in page
    assert page.count("<rect") == 3
    listed = json.loads(served.get("/api/snapshots").text)
    assert [s["checkpoint_id"] for s in listed["snapshots"]] == [1, 2, 3]
    assert listed["newest"] == "chk-3"


def test_a_snapshot(demo: Explorer) -> None:
    page = demo.get("/snapshot").text
    for part in ("No errors or warnings", "Map&lt;String, LocalDate&gt;", "Sources and sinks", "window-contents"):
        assert part in page
    zoo_page = ""
    with exploring(ZOO, is_root=False) as zoo:
        zoo_page = zoo.get("/snapshot").text
    assert "Not read" in zoo_page
    assert 'class="finding' in zoo_page


def test_sizes(demo: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    page = demo.get("/sizes").text
    for part in (
        "Key groups",
        "Subtasks",
        "Largest keys and values",
        "Timers",
        '<svg class="heat"',
        "key groups have entries",
    ):
        assert part in page
    images = re.findall(r"<svg[^>]*>", page)
    assert all('aria-label="' in image or 'aria-hidden="true"' in image for image in images)
    assert page.endswith("</html>\n")

    def fail(*_: object) -> object:
        raise StatetoolError("<b>damaged</b>")

    monkeypatch.setattr(long_reads, "statistics_of", fail)
    assert "damaged" not in demo.get("/sizes").text  # the result is kept
    with exploring(str(DEMO), is_root=False) as other:
        assert '<p class="bad" role="alert">&lt;b&gt;damaged' in other.get("/sizes").text


def test_sizes_show_progress_and_end_with_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended, go, cancelled = (threading.Event() for _ in range(4))
    done: list[object] = []
    cancel = long_reads._Read.cancel

    def cancel_and_tell(self: long_reads._Read) -> None:
        cancel(self)
        cancelled.set()

    def slow(operators: object, request: object, each: Callable[..., Iterable[object]]) -> object:
        def wait(item: object) -> object:
            begun.set()
            assert go.wait(60)
            done.append(item)
            return item

        try:
            return list(each(wait, [1, 2, 3, 4, 5, 6, 7, 8]))
        finally:
            ended.set()

    monkeypatch.setattr(long_reads, "statistics_of", slow)
    monkeypatch.setattr(long_reads, "_STEP_S", 0.05)
    monkeypatch.setattr(long_reads._Read, "cancel", cancel_and_tell)
    with exploring(str(DEMO), is_root=False) as explorer:
        connection = http.client.HTTPConnection("127.0.0.1", explorer.port, timeout=60)
        connection.request("GET", "/sizes", headers={"Authorization": f"Bearer {explorer.token}"})
        answer = connection.getresponse()
        seen = b""
        while b"0 of 8 parts" not in seen:
            seen += answer.read1()
        assert b"To cancel, stop loading this page" in seen
        assert begun.wait(60)
        answer.close()
        connection.close()
        assert cancelled.wait(60)
        go.set()
        assert ended.wait(60)
    assert len(done) < 8


def test_pages_of_rows(tmp_path: Path) -> None:
    import pyarrow as pa

    state = statetool.bootstrap_keyed_state(pa.table({"id": list(range(120)), "v": list(range(120))}), key="id")
    path = str(tmp_path / "sp")
    statetool.SavepointWriter.new().with_operator("op", state).write(path)
    seen: set[str] = set()
    with exploring(path, is_root=False) as explorer:
        for start, rows in ((0, 50), (50, 50), (100, 20)):
            page = explorer.get(f"/table?o=op&start={start}").text
            keys = {part.partition('"')[0] for part in page.split("key=")[1:]}
            numbers = {key for key in keys if key.isdigit()}
            assert len(numbers) == rows
            assert not numbers & seen
            seen |= numbers
            assert ("Next rows" in page) is (start < 100)
        assert explorer.get("/table?o=op&start=10000").status == 400
        assert explorer.get("/table?o=op&start=-1").status == 400
        assert "Rows 1 to 1" in explorer.get("/table?o=op&key=7").text
    assert len(seen) == 120


def test_nested_values_fold(demo: Explorer) -> None:
    page = demo.get("/table?o=orders&t=keyed_state&key=Ada").text
    assert page.count('<details class="value">') > 2
    assert "<dt>city</dt><dd>London</dd>" in page


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_downloads(demo: Explorer, form: str) -> None:
    answer = demo.get(f"/download?o=orders&t=keyed_state&format={form}")
    expected = statetool.load(str(DEMO))["orders"].to_arrow("keyed_state", on_error="keep_raw")
    assert answer.headers["content-disposition"] == f'attachment; filename="table.{form}"'
    if form == "parquet":
        assert pq.read_table(io.BytesIO(answer.body)).equals(expected)
    else:
        header, *lines = answer.text.splitlines()
        assert header == ",".join(expected.schema.names)
        assert len(lines) == expected.num_rows
    assert demo.get("/download?o=orders&format=xlsx").status == 400


def test_two_snapshots(served: Explorer, root: Path) -> None:
    assert "No differences" in served.get("/diff?a=chk-1&b=chk-2").text
    changed = root / "chk-4"
    with_points(changed, 4, 65)
    try:
        page = served.get("/diff?a=chk-1&b=chk-4").text
        assert '<span class="removed">64</span>' in page
        assert '<span class="added">65</span>' in page
    finally:
        shutil.rmtree(changed)


# ---- look-ups ----------------------------------------------------------------------------------


def looked_up(answer: Answer) -> dict[str, object]:
    return {s["state"]: s["value"] for s in json.loads(answer.text)["states"]}


def test_a_look_up(demo: Explorer) -> None:
    answer = demo.get("/api/get?o=orders&key=Ada")
    assert looked_up(answer)["points"] == 64
    assert looked_up(demo.get("/api/get?o=orders&key=Ada&state=spent")) == {"spent": [["mug", 2800], ["coffee", 3670]]}
    missing = demo.get("/api/get?o=orders&key=Bob")
    assert (missing.status, json.loads(missing.text)["found"]) == (404, False)
    for query, status in (
        ("", 400),
        ("?o=orders", 400),
        ("?o=none&key=1", 404),
        ("?o=orders&key=[1", 400),
        ("?o=orders&key=1&state=x", 404),
    ):
        wrong = demo.get(f"/api/get{query}")
        assert wrong.status == status
        assert json.loads(wrong.text)["error"]


def test_an_unchanged_checkpoint_is_not_sent_again(demo: Explorer) -> None:
    tag = demo.get("/api/get?o=orders&key=Ada").headers["etag"]
    assert tag.startswith('"1-')
    again = demo.get("/api/get?o=orders&key=Ada", If_None_Match=f'W/"0", {tag}')
    assert (again.status, again.body) == (304, b"")
    assert demo.get("/api/get?o=orders&key=Ada", If_None_Match='"2-0"').status == 200


def test_look_ups_follow_the_newest_checkpoint(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = root.parent / "job"
    shutil.copytree(root, folder)
    monkeypatch.setattr(latest, "FRESH_S", 0.0)
    monkeypatch.setattr(latest, "_WAIT_S", 60.0)
    with exploring(str(folder), is_root=True) as explorer:
        first = explorer.get("/api/get?o=orders&key=Ada")
        assert json.loads(first.text)["snapshot"] == "chk-3"
        with_points(folder / "chk-4", 4, 65)
        second = explorer.get("/api/get?o=orders&key=Ada", If_None_Match=first.headers["etag"])
        assert (second.status, looked_up(second)["points"]) == (200, 65)
        shutil.rmtree(folder / "chk-4")
        third = explorer.get("/api/get?o=orders&key=Ada")
        assert (third.headers["etag"], looked_up(third)["points"]) == (first.headers["etag"], 64)
