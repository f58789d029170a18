"""The APIs by which Doris and StarRocks load rows in two phases, without the databases: transactions are prepared, then committed or aborted.

Answers follow the documentation of both, and what their connectors for Flink look for (``ResponseUtil``, ``TransactionStreamLoader``).
"""

from __future__ import annotations

import contextlib
import json
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, TypeAlias

Status: TypeAlias = Literal["open", "prepared", "committed", "aborted"]


@dataclass(slots=True, kw_only=True)
class Load:
    """A transaction with the rows that it loads."""

    label: str
    status: Status
    rows: list[str] = field(default_factory=list)


class StreamLoads(ABC):
    """Transactions of the table ``shop.out``, by the names that statetool gives them.

    Attributes
    ----------
    address
        Host and port.
    commits
        Requests to commit each of them, also those that are refused.
    """

    def __init__(self) -> None:
        self.address = ""
        self.loads: dict[str, Load] = {}
        self.commits: Counter[str] = Counter()
        self.lock = threading.Lock()

    def names(self, status: Status) -> set[str]:
        """Return the transactions of a status."""
        with self.lock:
            return {name for name, load in self.loads.items() if load.status == status}

    def rows(self, names: set[str]) -> list[str]:
        """Return the rows of transactions."""
        return [row for name in names for row in self.loads[name].rows]

    @abstractmethod
    def answer(self, path: str, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
        """Return the answer to a request."""


class Doris(StreamLoads):
    """Doris: one request begins a transaction, loads its rows and prepares it."""

    def answer(self, path: str, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
        if path == "/api/shop/out/_stream_load" and headers["two_phase_commit"] == "true":
            return self._load(headers["label"], body)
        if path == "/api/shop/_stream_load_2pc":
            return self._end(int(headers["txn_id"]), headers["txn_operation"])
        return {}

    def _load(self, label: str, body: bytes) -> dict[str, Any]:
        for name, used in self.loads.items():
            if used.label == label and used.status != "aborted":
                number = int(name.partition("/")[2])
                return {
                    "TxnId": number,
                    "Label": label,
                    "TwoPhaseCommit": "true",
                    "Status": "Label Already Exists",
                    "ExistingJobStatus": "FINISHED" if used.status == "committed" else "RUNNING",
                    "Message": f"Label [{label}] has already been used, relate to txn [{number}]",
                }
        number = len(self.loads) + 1
        self.loads[f"shop/{number}"] = Load(label=label, status="prepared", rows=body.decode().splitlines())
        return {"TxnId": number, "Label": label, "TwoPhaseCommit": "true", "Status": "Success", "Message": "OK"}

    def _end(self, number: int, operation: str) -> dict[str, Any]:
        load = self.loads.get(f"shop/{number}")
        if operation == "commit":
            self.commits[f"shop/{number}"] += 1
        if load is None:
            return {"status": "ANALYSIS_ERROR", "msg": f"errCode = 2, detailMessage = transaction [{number}] not found"}
        if load.status != "prepared":
            message = f"transaction [{number}] is already {load.status}, not pre-committed."
            return {"status": "ANALYSIS_ERROR", "msg": f"errCode = 2, detailMessage = {message}"}
        load.status = "committed" if operation == "commit" else "aborted"
        return {"status": "Success", "msg": f"transaction [{number}] {operation} successfully."}


class StarRocks(StreamLoads):
    """StarRocks: each step of a transaction is a request with its label."""

    def answer(self, path: str, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
        if path.startswith("/api/shop/get_load_state?label="):
            found = self.loads.get(path.partition("=")[2])
            states = {"open": "PREPARE", "prepared": "PREPARED", "committed": "VISIBLE", "aborted": "ABORTED"}
            return {"state": "UNKNOWN" if found is None else states[found.status]}
        step, label = path.removeprefix("/api/transaction/"), headers["label"]
        if step == "commit":
            self.commits[label] += 1
        load = self.loads.get(label)
        if step == "begin":
            if load is not None and load.status != "aborted":
                return {"Status": "LABEL_ALREADY_EXISTS", "Label": label}
            self.loads[label] = Load(label=label, status="open")
        elif load is None:
            return {"Status": "TXN_NOT_EXISTS", "Label": label}
        elif step == "load" and load.status == "open":
            load.rows += body.decode().splitlines()
        elif step == "prepare" and load.status == "open":
            load.status = "prepared"
        elif step == "commit" and load.status == "prepared":
            load.status = "committed"
        elif step == "rollback" and load.status in ("open", "prepared"):
            load.status = "aborted"
        else:
            return {"Status": "FAILED", "Label": label, "Message": f"{step} of a transaction that is {load.status}"}
        return {"Status": "OK", "Label": label, "Message": ""}


@contextlib.contextmanager
def run_server(loads: StreamLoads) -> Iterator[None]:
    """Run the server of a database on this machine."""

    class Handler(BaseHTTPRequestHandler):
        # Clients ask whether to send a body.
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer()

        def do_PUT(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def _answer(self) -> None:
            body = self._body()
            if body is None:
                # The client went away: the database aborts the load.
                self.close_connection = True
            elif self.path == "/commits":
                self._send(str(len(loads.names("committed"))))
            elif self.path == "/":
                self._send("OK")
            else:
                with loads.lock:
                    answer = loads.answer(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
                self._send(json.dumps(answer))

        def _body(self) -> bytes | None:
            """Return the complete body, ``None`` if the client does not send its end."""
            if self.headers.get("Transfer-Encoding") != "chunked":
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length)
                return body if len(body) == length else None
            chunks = list[bytes]()
            with contextlib.suppress(ConnectionError):
                while size := self.rfile.readline():
                    chunk = self.rfile.read(int(size, 16) + 2)[:-2]
                    if not int(size, 16):
                        return b"".join(chunks)
                    chunks.append(chunk)
            return None

        def _send(self, text: str) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(text.encode())))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    loads.address = f"127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.02), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
