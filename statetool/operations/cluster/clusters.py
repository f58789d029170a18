"""Credentials of several clusters: set by the program, listed in a file, or those of the environment.

The file is an INI file with a section per server. In Python, :func:`set_credentials` does the same. Requests to other servers have the
credentials of the environment.
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlsplit

from statetool.errors import OptionError, suggest
from statetool.operations.cluster.address import parse_server
from statetool.operations.cluster.credentials import VARIABLES, Credentials

#: The environment variable with the path of the file.
CLUSTERS: Final = "STATETOOL_FLINK_CLUSTERS"
#: Settings in the file whose value is in another file.
_IN_FILES: Final = {"token_file": "token", "password_file": "password"}
_PATHS: Final = ("ca", "cert", "key", *_IN_FILES)
_KNOWN: Final = (*VARIABLES, *_IN_FILES)
_NAMES: Final = {name: name for name in VARIABLES}


class SetCredentials:
    """The credentials that a program has set, by server."""

    def __init__(self) -> None:
        self._by_server: dict[str, Credentials] = {}

    def put(self, server: str, credentials: Credentials) -> None:
        """Set the credentials for a server."""
        self._by_server[server] = credentials

    def find(self, servers: Iterable[str]) -> Credentials | None:
        """Return the credentials for the first of these servers that has any."""
        return next((self._by_server[server] for server in servers if server in self._by_server), None)


#: Those of the process: :func:`set_credentials` sets them, and clients take them when they are made.
CREDENTIALS: Final = SetCredentials()


def set_credentials(
    server: str,
    *,
    token: str | None = None,
    user: str | None = None,
    password: str | None = None,
    headers: Mapping[str, str] | None = None,
    ca: str | os.PathLike[str] | None = None,
    cert: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
    timeout: float | None = None,
    deadline: float | None = None,
) -> None:
    """Set the credentials for a Flink cluster, for all later requests of this process.

    They replace those of an earlier call for this server. They also replace those of the file in ``STATETOOL_FLINK_CLUSTERS`` and of the
    other environment variables, which requests to this server then do not use.

    Parameters
    ----------
    server
        URL of the REST API, such as ``flinks://flink.example.com:443`` or ``https://example.com/flink``. Without a path, it stands for all
        paths of the host that have no credentials of their own.
    token
        A bearer token.
    user, password
        For basic authentication.
    headers
        More headers.
    ca
        PEM file of the certificate authority of the server. Defaults to that of the system.
    cert, key
        PEM files of a client's certificate and its key, for mutual TLS. Without ``key``, the file ``cert`` has both.
    timeout
        Seconds to wait for a connection, and for each whole answer. Defaults to 10.
    deadline
        Seconds that all answers to a command or call may take. Defaults to 300.

    Raises
    ------
    OptionError
        Not the URL of a server, or a setting is malformed, or two of them contradict each other. The message has no secret.
    """
    settings = {
        "token": token or "",
        "user": user or "",
        "password": password or "",
        "headers": "\n".join(f"{name}: {value}" for name, value in (headers or {}).items()),
        "ca": os.fspath(ca or ""),
        "cert": os.fspath(cert or ""),
        "key": os.fspath(key or ""),
        "timeout": "" if timeout is None else str(timeout),
        "deadline": "" if deadline is None else str(deadline),
    }
    CREDENTIALS.put(parse_server(server), Credentials.from_settings(settings, _NAMES, " (statetool.set_credentials)"))


def credentials_for(server: str) -> Credentials:
    """Return the credentials for a server: those of :func:`set_credentials`, of the file of clusters, or of the environment.

    Parameters
    ----------
    server
        URL of the REST API.

    Raises
    ------
    OptionError
        The file cannot be read or is malformed, or a setting is. The message has no secret.
    """
    exact = parse_server(server)
    wanted = (exact, parse_server(server.removesuffix(urlsplit(server).path)))
    if (found := CREDENTIALS.find(wanted)) is not None:
        return found
    if file := os.path.expanduser(os.environ.get(CLUSTERS, "")):
        sections = _read_sections(file)
        for name in wanted:
            if name in sections:
                return _credentials_of(sections[name], file)
    return Credentials.from_environment()


@contextmanager
def using_clusters(file: str | None) -> Iterator[None]:
    """Use the credentials in a file for requests in the block, also those of other processes started there. ``None`` changes nothing."""
    if file is None:
        yield
        return
    before = os.environ.get(CLUSTERS)
    os.environ[CLUSTERS] = os.path.abspath(os.path.expanduser(file))
    try:
        yield
    finally:
        if before is None:
            del os.environ[CLUSTERS]
        else:
            os.environ[CLUSTERS] = before


def _read_sections(file: str) -> dict[str, configparser.SectionProxy]:
    """Return the sections of a file by server."""
    parser, problem = configparser.RawConfigParser(delimiters=("=",), default_section=""), ""
    try:
        with open(file, encoding="utf-8") as stream:
            parser.read_file(stream)
    except OSError as error:
        problem = f"cannot be read ({error.strerror})"
    except UnicodeDecodeError:
        problem = "is not text in UTF-8"
    except configparser.Error as error:
        problem = f"{_line(error)} is malformed"
    if problem:  # raised outside of the handler, because errors of the parser contain lines of the file
        raise OptionError(
            f"{file} {problem}", hint="write sections [flinks://HOST:PORT] with lines such as user = NAME"
        )
    sections: dict[str, configparser.SectionProxy] = {}
    for name, section in parser.items():
        if not name:
            continue
        try:
            server = parse_server(name)
        except OptionError as error:
            raise OptionError(f"{file}: [{name}] is {error.message}", hint=error.hint) from None
        if server in sections:
            raise OptionError(f"{file}: [{name}] and [{sections[server].name}] are the same server")
        for setting in section:
            if setting not in _KNOWN:
                raise OptionError(f"{file}: [{name}] has an unknown setting {setting!r}", hint=suggest(setting, _KNOWN))
        sections[server] = section
    return sections


def _line(error: configparser.Error) -> str:
    errors = getattr(error, "errors", None)
    number = errors[0][0] if errors else getattr(error, "lineno", None)
    return f"line {number}" if number else "it"


def _credentials_of(section: configparser.SectionProxy, file: str) -> Credentials:
    place = f" in [{section.name}] of {file}"
    settings = dict(section)
    for name in _PATHS:
        if settings.get(name):
            settings[name] = os.path.join(os.path.dirname(file), os.path.expanduser(settings[name]))
    for name, setting in _IN_FILES.items():
        path = settings.pop(name, "")
        if not path:
            continue
        if settings.get(setting):
            raise OptionError(f"{name} and {setting} are both set{place}", hint="keep one of them")
        settings[setting] = _read_secret(path, f"{name}={path}{place}")
    return Credentials.from_settings(settings, _NAMES, place)


def _read_secret(path: str, what: str) -> str:
    problem = "is empty"
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as stream:
            if text := stream.read().rstrip("\r\n"):
                return text
    except OSError as error:
        problem = f"cannot be read ({error.strerror})"
    raise OptionError(f"{what} {problem}")
