"""Real databases on loopback with prepared XA transactions, from binaries that Maven fetches: PostgreSQL and MariaDB."""

from __future__ import annotations

import base64
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol

import pg8000.native
import pymysql

from statetool.connectors.layouts.jdbc import Xid
from tests.support.patience import eventually
from tests.support.servers.ports import free_ports
from tools.archives import unpack
from tools.maven import maven_jars

PASSWORD: Final = "s3cret/word"
_USER: Final = "flink"


class XaDatabase(Protocol):
    """A database with a table ``out (n bigint)``, and XA transactions as its JDBC driver names and ends them."""

    kind: ClassVar[str]
    #: Its URL without a password.
    url: str

    def prepare(self, xid: Xid, number: int) -> None:
        """Write a number in a transaction, and prepare it."""

    def end(self, xid: Xid, how: str) -> None:
        """Commit or roll back a prepared transaction: ``COMMIT`` or ``ROLLBACK``."""

    def execute(self, sql: str) -> list[Any]:
        """Run a statement outside transactions, and return its rows."""


class Postgres:
    """A PostgreSQL with a password."""

    kind: ClassVar[str] = "postgresql"

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"postgresql://{_USER}@127.0.0.1:{port}/shop"

    def connect(self, database: str = "shop") -> Any:
        return closing(
            pg8000.native.Connection(_USER, host="127.0.0.1", port=self.port, database=database, password=PASSWORD)
        )

    def prepare(self, xid: Xid, number: int) -> None:
        self.prepare_named(pgjdbc_name(xid), number)

    def prepare_named(self, name: str, number: int, database: str = "shop") -> None:
        with self.connect(database) as connection:
            connection.run("BEGIN")
            connection.run(f"INSERT INTO out VALUES ({number})")
            connection.run(f"PREPARE TRANSACTION '{name}'")

    def end(self, xid: Xid, how: str) -> None:
        self.execute(f"{how} PREPARED '{pgjdbc_name(xid)}'")

    def execute(self, sql: str) -> list[Any]:
        with self.connect() as connection:
            return list(connection.run(sql) or ())


class MariaDb:
    """A MariaDB without passwords. Before 10.5, it rolls a prepared transaction back when its connection is closed."""

    kind: ClassVar[str] = "mysql"

    def __init__(self, port: int, opened: ExitStack) -> None:
        self.port = port
        self.url = f"mysql://{_USER}@127.0.0.1:{port}/shop"
        self._opened = opened
        self._connections: dict[Xid, Any] = {}

    def connect(self, database: str | None = "shop") -> Any:
        connection = pymysql.connect(
            host="127.0.0.1", port=self.port, user=_USER, database=database, autocommit=True, ssl_disabled=True
        )
        return closing(connection)

    def prepare(self, xid: Xid, number: int) -> None:
        connection = self._connections[xid] = self._opened.enter_context(self.connect())
        with connection.cursor() as cursor:
            cursor.execute(f"XA START {_connector_j_name(xid)}")
            cursor.execute(f"INSERT INTO `out` VALUES ({number})")
            cursor.execute(f"XA END {_connector_j_name(xid)}")
            cursor.execute(f"XA PREPARE {_connector_j_name(xid)}")

    def end(self, xid: Xid, how: str) -> None:
        with self._connections[xid].cursor() as cursor:
            cursor.execute(f"XA {how} {_connector_j_name(xid)}")

    def execute(self, sql: str) -> list[Any]:
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())


def pgjdbc_name(xid: Xid) -> str:
    """Return the name that pgjdbc gives a transaction."""
    parts = (xid.global_transaction_id, xid.branch_qualifier)
    return "_".join([str(xid.format_id), *(base64.b64encode(part).decode() for part in parts)])


def _connector_j_name(xid: Xid) -> str:
    return f"0x{xid.global_transaction_id.hex()},0x{xid.branch_qualifier.hex()},0x{xid.format_id:x}"


@contextmanager
def postgres_server() -> Iterator[Postgres]:
    """Run a PostgreSQL with the databases ``shop`` and ``other``."""
    with _folder() as folder:
        _unpack("postgres", folder, ())
        (archive,) = folder.glob("*.txz")
        unpack(archive, folder)
        _open_to_all(folder)
        data, secret = folder / "data", folder / "password"
        secret.write_text(PASSWORD)
        # PostgreSQL refuses to run as root.
        user: dict[str, Any] = {}
        if os.getuid() == 0:
            user = {"user": "nobody", "group": "nogroup", "extra_groups": ()}
            data.mkdir()
            for path in (data, secret):
                shutil.chown(path, "nobody", "nogroup")
        options = (f"--pgdata={data}", f"--username={_USER}", "--auth=scram-sha-256", f"--pwfile={secret}", "--no-sync")
        create = [str(folder / "bin" / "initdb"), *options, "--locale=C", "--encoding=UTF8"]
        subprocess.run(create, check=True, capture_output=True, **user)
        (port,) = free_ports(1)
        settings = ("listen_addresses=127.0.0.1", f"port={port}", "unix_socket_directories=", "fsync=off")
        command: list[str | Path] = [folder / "bin" / "postgres", "-D", data]
        for setting in (*settings, "max_prepared_transactions=50", "shared_buffers=16MB"):
            command += ["-c", setting]
        server = Postgres(port)
        with _process(command, folder / "log.txt", signal.SIGINT, **user) as is_alive:
            _await(lambda: server.connect("postgres"), pg8000.native.InterfaceError, is_alive, folder / "log.txt")
            with server.connect("postgres") as connection:
                connection.run("CREATE DATABASE shop")
                connection.run("CREATE DATABASE other")
            for name in ("shop", "other"):
                with server.connect(name) as connection:
                    connection.run("CREATE TABLE out (n bigint)")
            yield server


@contextmanager
def mariadb_server() -> Iterator[MariaDb]:
    """Run a MariaDB with the database ``shop``. It has no tables of users, and does not check passwords."""
    with _folder() as folder, ExitStack() as opened:
        _unpack(
            "mariadb", folder, ("bin/mysqld", "libs/libaio.so.1", "libs/libjemalloc.so.1", "share/english/errmsg.sys")
        )
        (binary,) = folder.rglob("mysqld")
        binary.chmod(0o755)
        base, data = binary.parent.parent, folder / "data"
        (data / "mysql").mkdir(parents=True)
        (port,) = free_ports(1)
        settings = [
            f"basedir={base}", f"lc-messages-dir={base / 'share'}", f"datadir={data}", f"socket={folder / 'socket'}",
            f"port={port}", "bind-address=127.0.0.1", "skip-grant-tables", "innodb-flush-log-at-trx-commit=0",
            "innodb-buffer-pool-size=8M", "innodb-log-file-size=4M",
        ]  # fmt: skip
        if os.getuid() == 0:
            settings.append("user=root")
        arguments: list[str | Path] = [binary, "--no-defaults", *(f"--{setting}" for setting in settings)]
        server = MariaDb(port, opened)
        environment = {**os.environ, "LD_LIBRARY_PATH": str(base / "libs")}
        with _process(arguments, folder / "log.txt", signal.SIGTERM, env=environment) as is_alive:
            _await(lambda: server.connect(None), pymysql.OperationalError, is_alive, folder / "log.txt")
            with server.connect(None) as connection, connection.cursor() as cursor:
                cursor.execute("CREATE DATABASE shop")
                cursor.execute("CREATE TABLE shop.`out` (n bigint) ENGINE=InnoDB")
            yield server
            opened.close()


@contextmanager
def _folder() -> Iterator[Path]:
    """Yield a temporary folder that another user can enter, which pytest's folders and a private ``TMPDIR`` do not allow."""
    places = (Path(place).resolve() for place in (tempfile.gettempdir(), "/tmp", "/var/tmp"))
    open_place = next(p for p in places if all(each.stat().st_mode & stat.S_IXOTH for each in (p, *p.parents)))
    with tempfile.TemporaryDirectory(prefix="database-", dir=open_place) as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def _open_to_all(folder: Path) -> None:
    """Let another user read and run what is in a folder, also where files are made for their owner alone (``umask 077``)."""
    for path in folder.rglob("*"):
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(mode | 0o444 | (0o111 if mode & stat.S_IXUSR else 0))


def _unpack(jar_set: str, folder: Path, ends: tuple[str, ...]) -> None:
    (jar,) = maven_jars(jar_set)
    with zipfile.ZipFile(jar) as archive:
        archive.extractall(folder, [name for name in archive.namelist() if name.endswith(ends or ".txz")])


@contextmanager
def _process(
    command: Sequence[str | Path], log: Path, end: signal.Signals, **options: Any
) -> Iterator[Callable[[], bool]]:
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, **options)
        try:
            yield lambda: process.poll() is None
        finally:
            process.send_signal(end)
            process.wait()


def _await(connect: Callable[[], Any], refusal: type[Exception], is_alive: Callable[[], bool], log: Path) -> None:
    def answers() -> bool:
        assert is_alive(), f"the database ended: {log.read_text()[-3000:]}"
        with connect():
            return True

    eventually(answers, retry=(refusal, pg8000.native.DatabaseError))
