"""Prepared XA transactions of a running database: PostgreSQL with ``pg8000``, MySQL and MariaDB with ``PyMySQL``. Nothing is changed in it.

PostgreSQL lists the prepared transactions of all databases of a server in ``pg_prepared_xacts``. pgjdbc (``RecoveredXid``) names one by its
format, global id and branch qualifier: a decimal number and two texts in Base64, joined by underscores. A database ends only its own ones.

MySQL and MariaDB list those of the server with ``XA RECOVER``: format, lengths of global id and branch qualifier, and the bytes of both
(``MysqlXAConnection`` of Connector/J).

A URL is that of the JDBC driver, or of libpq. Passwords also come from ``PGPASSWORD`` and ``MYSQL_PWD``, as in the tools of the databases.
"""

from __future__ import annotations

import base64
import getpass
import os
import re
import ssl
import struct
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from statetool.connectors.layouts.jdbc import Xid
from statetool.errors import ConnectionFailedError, MissingDependencyError, OptionError
from statetool.io.threads import call_with_timeout

Kind: TypeAlias = Literal["postgresql", "mysql"]
Encryption: TypeAlias = Literal["off", "preferred", "required", "verified", "verified-host"]

TIMEOUT_S: Final = 30
#: Connection and query together may take this many times the timeout of one part.
_PARTS: Final = 4
_KINDS: Final[Mapping[str, Kind]] = {
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "mysql": "mysql",
    "mariadb": "mysql",
}
_PORTS: Final[Mapping[Kind, int]] = {"postgresql": 5432, "mysql": 3306}
_USERS: Final[Mapping[Kind, str]] = {"postgresql": "PGUSER", "mysql": "USER"}
_PASSWORDS: Final[Mapping[Kind, str]] = {"postgresql": "PGPASSWORD", "mysql": "MYSQL_PWD"}
#: Values of ``sslmode`` (PostgreSQL) and ``sslMode`` (MySQL, MariaDB).
_ENCRYPTION: Final[Mapping[str, Encryption]] = {
    "disable": "off",
    "disabled": "off",
    "allow": "preferred",
    "prefer": "preferred",
    "preferred": "preferred",
    "require": "required",
    "required": "required",
    "trust": "required",
    "verify-ca": "verified",
    "verify-full": "verified-host",
    "verify-identity": "verified-host",
}
_POSTGRES_NAME: Final = re.compile(r"(-?[0-9]{1,10})_([A-Za-z0-9+/=]*)_([A-Za-z0-9+/=]*)")
_POSTGRES_QUERY: Final = (
    "SELECT gid, to_char(prepared AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS'), "
    "CASE WHEN database <> current_database() THEN database END FROM pg_prepared_xacts"
)
_FORM: Final = "pass postgresql://user@host:port/database or mysql://user@host:port/database"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A prepared transaction of a database.

    Attributes
    ----------
    time
        When it was prepared (UTC), ``None`` if the database does not tell.
    other_database
        The database of the same server that has it, if it is not the one of the URL.
    rollback
        SQL that rolls it back.
    """

    xid: Xid
    time: str | None = None
    other_database: str | None = None
    rollback: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """A database, as a URL names it."""

    kind: Kind
    host: str
    port: int
    name: str
    user: str
    password: str = field(repr=False)
    encryption: Encryption = "preferred"
    root_certificate: str | None = None

    def __str__(self) -> str:
        """Return the URL without user and password."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.kind}://{host}:{self.port}/{self.name}"


def prepared_transactions(url: str, timeout_s: float = TIMEOUT_S) -> list[Prepared]:
    """Return the prepared XA transactions of a database. Those with other names than an XA driver's are left out.

    Raises
    ------
    OptionError
        The URL is not valid, or the database is not supported.
    ConnectionFailedError
        The database did not answer in time, or refused.
    MissingDependencyError
        The driver is not installed.
    """
    database = read_url(url)
    if database.kind == "postgresql":
        return list(_ask_postgresql(database, timeout_s))
    return list(_ask_mysql(database, timeout_s))


def read_url(url: str) -> Database:
    """Return the database that a URL names. No error contains the URL, which may have a password.

    Raises
    ------
    OptionError
        The URL is not valid, or the database is not supported.
    """
    url = url.strip().removeprefix("jdbc:")
    scheme = url.partition(":")[0].lower()
    kind = _KINDS.get(scheme)
    if kind is None:
        known = re.fullmatch(r"[a-z][a-z0-9+.-]{0,20}", scheme) and ":" in url
        raise OptionError(
            f"prepared transactions of {scheme!r} cannot be listed"
            if known
            else "the URL of the database has no scheme",
            hint=f"only PostgreSQL, MySQL and MariaDB are supported: {_FORM}",
        )
    parts = _split(url)
    options = {name.lower(): value for name, value in parse_qsl(parts.query if parts else "", keep_blank_values=True)}
    if parts is None or any("@" in name for name in options):
        raise OptionError(
            "the URL of the database is not valid",
            hint=f"{_FORM}, with one host; percent-encode special characters of a password, or set {_PASSWORDS[kind]}",
        )
    user = unquote(parts.username or "") or options.get("user") or os.environ.get(_USERS[kind]) or _system_user()
    password = unquote(parts.password or "") or options.get("password") or os.environ.get(_PASSWORDS[kind])
    return Database(
        kind=kind,
        host=unquote(parts.hostname or "localhost"),
        port=parts.port or _PORTS[kind],
        name=unquote(parts.path.lstrip("/")) or (user if kind == "postgresql" else ""),
        user=user,
        password=password or "",
        encryption=_encryption(options),
        root_certificate=options.get("sslrootcert") or None,
    )


def _split(url: str) -> SplitResult | None:
    """Return the parts of a URL, ``None`` if it is not valid. A special character of a password may end its first part."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises if it is not a number
    except ValueError:
        return None
    return None if "@" in parts.path or parts.fragment or "," in parts.netloc else parts


def _system_user() -> str:
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):
        raise OptionError("the URL of the database has no user", hint=_FORM) from None


def _encryption(options: Mapping[str, str]) -> Encryption:
    """Return how a connection is encrypted. The drivers for Java have two options each."""
    mode = options.get("sslmode", "").lower().replace("_", "-")
    if mode:
        if mode not in _ENCRYPTION:
            raise OptionError("sslmode of the URL is not known", hint=f"pass one of {', '.join(_ENCRYPTION)}")
        return _ENCRYPTION[mode]
    if "ssl" in options and options["ssl"].lower() != "false":
        return "verified-host"
    use = options.get("usessl", "").lower()
    return "off" if use == "false" else "required" if use == "true" else "preferred"


def _ssl_context(database: Database) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=database.root_certificate)
    context.check_hostname = database.encryption == "verified-host"
    if database.encryption == "required":
        context.verify_mode = ssl.CERT_NONE
    return context


def _ask_postgresql(database: Database, timeout_s: float) -> Iterator[Prepared]:
    native, errors = _driver("pg8000.native", "pg8000"), _driver("pg8000.exceptions", "pg8000")
    # Without a value, the driver encrypts if the server supports it.
    encryption = {"off": False, "preferred": None}

    def ask() -> Any:
        context = encryption[database.encryption] if database.encryption in encryption else _ssl_context(database)
        connection = native.Connection(
            database.user,
            host=database.host,
            port=database.port,
            database=database.name,
            password=database.password,
            ssl_context=context,
            timeout=timeout_s,
            application_name="statetool",
        )
        with closing(connection):
            return connection.run(_POSTGRES_QUERY)

    with _asking(database, errors.Error):
        rows = call_with_timeout(_PARTS * timeout_s, ask)
    for gid, time, other in rows:
        if (xid := _postgres_xid(gid)) is not None:
            yield Prepared(xid=xid, time=time, other_database=other, rollback=f"ROLLBACK PREPARED '{gid}'")


def _postgres_xid(gid: str) -> Xid | None:
    """Return the transaction of a name by pgjdbc, ``None`` for other names."""
    match = _POSTGRES_NAME.fullmatch(gid)
    if match is None:
        return None
    try:
        global_id, branch = (base64.b64decode(part, validate=True) for part in match.groups()[1:])
    except ValueError:
        return None
    return Xid(format_id=int(match[1]), global_transaction_id=global_id, branch_qualifier=branch)


def _ask_mysql(database: Database, timeout_s: float) -> Iterator[Prepared]:
    driver = _driver("pymysql", "PyMySQL")

    def ask() -> Any:
        settings: dict[str, Any] = {}
        if database.encryption == "off":
            settings["ssl_disabled"] = True
        elif database.encryption != "preferred":
            settings["ssl"] = _ssl_context(database)
        connection = driver.connect(
            host=database.host,
            port=database.port,
            user=database.user,
            password=database.password,
            database=database.name or None,
            connect_timeout=timeout_s,
            read_timeout=timeout_s,
            write_timeout=timeout_s,
            use_unicode=False,  # the column of the ids has a character set, but its bytes are no text
            **settings,
        )
        with closing(connection), connection.cursor() as cursor:
            cursor.execute("XA RECOVER")
            return cursor.fetchall()

    with _asking(database, driver.err.Error):
        rows = call_with_timeout(_PARTS * timeout_s, ask)
    for format_id, global_length, branch_length, data in rows:
        global_id, branch = data[:global_length], data[global_length : global_length + branch_length]
        yield Prepared(
            xid=Xid(format_id=format_id, global_transaction_id=global_id, branch_qualifier=branch),
            rollback=f"XA ROLLBACK X'{global_id.hex()}',X'{branch.hex()}',{format_id}",
        )


def _driver(module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f"asking the database needs the package {package}", hint="pip install 'statetool[jdbc]'"
        ) from error


@contextmanager
def _asking(database: Database, driver_error: type[Exception]) -> Iterator[None]:
    """Raise errors of a driver as ours, without the password."""
    try:
        yield
    except (driver_error, OSError, ValueError, RuntimeError, LookupError, TypeError, struct.error) as error:
        text = _text(error)
        if database.password:
            text = text.replace(database.password, "***")
        raise ConnectionFailedError(
            f"{database} did not list its prepared transactions: {text}", hint=_hint(database, error)
        ) from None


def _text(error: Exception) -> str:
    """Return the message of a driver's error: PostgreSQL's is a mapping, that of MySQL follows its number."""
    for argument in error.args:
        if isinstance(argument, dict) and "M" in argument:
            return str(argument["M"])
    return ": ".join(str(argument) for argument in error.args) or type(error).__name__


def _hint(database: Database, error: Exception) -> str:
    number = error.args[0] if error.args else None
    if database.kind == "mysql" and number == 1401:
        return "GRANT XA_RECOVER_ADMIN ON *.* to the user (MySQL 8.0 and later)"
    if database.kind == "mysql" and "cryptography" in str(error):
        return "add ?sslMode=REQUIRED to the URL, so that the password is sent encrypted"
    return f"check host, port and user, and the password in {_PASSWORDS[database.kind]}"
