"""Credentials and connection settings for requests to Flink's REST API.

Secrets are not options of commands, because command lines are visible to other users and stored by shells. They are in no message, and
in no ``repr``.
"""

from __future__ import annotations

import base64
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from statetool.errors import OptionError

if TYPE_CHECKING:
    import ssl

#: The environment variable of each setting.
VARIABLES: Final[Mapping[str, str]] = {
    "token": "STATETOOL_FLINK_TOKEN",
    "user": "STATETOOL_FLINK_USER",
    "password": "STATETOOL_FLINK_PASSWORD",
    "headers": "STATETOOL_FLINK_HEADERS",
    "ca": "STATETOOL_FLINK_CA",
    "cert": "STATETOOL_FLINK_CERT",
    "key": "STATETOOL_FLINK_KEY",
    "timeout": "STATETOOL_FLINK_TIMEOUT",
    "deadline": "STATETOOL_FLINK_DEADLINE",
}
_SECRETS: Final = ("user", "password", "token", "headers")
_TIMEOUT_S: Final = 10.0
_DEADLINE_S: Final = 300.0
_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE: Final = re.compile(r"[\t\x20-\x7e]*")
_HIDDEN: Final = "***"
#: Shorter texts than this are not replaced in messages: they would also be parts of words.
_LEAST_HIDDEN: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """HTTP headers with credentials, and the settings of TLS.

    Attributes
    ----------
    source
        Where the credentials come from, for messages. Empty without credentials.
    key
        File with the key of ``certificate``, if it is not in the same file.
    verify
        Whether the certificate of the server is verified.
    timeout_s
        Seconds to wait for a connection, and for each whole answer.
    deadline_s
        Seconds that all answers to a command may take.
    names, place
        Names of the settings, and where to set them, for messages.
    """

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    source: str = ""
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    verify: bool = True
    timeout_s: float = _TIMEOUT_S
    deadline_s: float = _DEADLINE_S
    names: Mapping[str, str] = field(default_factory=lambda: VARIABLES, repr=False)
    place: str = field(default="", repr=False)

    @classmethod
    def from_environment(cls) -> Credentials:
        """Return the credentials that the variables ``STATETOOL_FLINK_*`` set.

        Raises
        ------
        OptionError
            As for :meth:`from_settings`.
        """
        return cls.from_settings({name: os.environ.get(variable, "") for name, variable in VARIABLES.items()})

    @classmethod
    def from_settings(
        cls, settings: Mapping[str, str], names: Mapping[str, str] = VARIABLES, place: str = ""
    ) -> Credentials:
        """Return the credentials of settings by the names in :data:`VARIABLES`. An empty setting is not set.

        Parameters
        ----------
        names, place
            As for the class.

        Raises
        ------
        OptionError
            A setting is malformed, or two of them contradict each other. The message has no secret.
        """
        given = {name: settings.get(name, "") for name in VARIABLES}
        if given["token"] and (given["user"] or given["password"]):
            raise OptionError(f"{names['token']} and {names['user']} are both set{place}", hint="keep one of them")
        if bool(given["user"]) != bool(given["password"]):
            raise OptionError(f"only one of {names['user']} and {names['password']} is set{place}", hint="set both")
        if given["key"] and not given["cert"]:
            raise OptionError(f"{names['key']} is set without {names['cert']}{place}", hint="set both")
        headers, secrets = _parse_headers(given["headers"], f"{names['headers']}{place}")
        if given["token"]:
            token = given["token"].strip()
            headers["Authorization"] = "Bearer " + _checked(token, f"{names['token']}{place}")
            secrets.append(token)
        elif given["user"]:
            if ":" in given["user"]:
                raise OptionError(
                    f"{names['user']}{place} contains a colon, which basic authentication does not support"
                )
            encoded = base64.b64encode(f"{given['user']}:{given['password']}".encode("utf-8", "surrogateescape"))
            headers["Authorization"] = f"Basic {encoded.decode()}"
            secrets += [encoded.decode(), given["password"]]
        used = " and ".join(names[name] for name in _SECRETS if given[name])
        return cls(
            headers=headers,
            secrets=tuple(sorted(secrets, key=len, reverse=True)),
            source=f"{used}{place}" if used else "",
            ca=given["ca"] or None,
            certificate=given["cert"] or None,
            key=given["key"] or None,
            timeout_s=_parse_seconds(given["timeout"], _TIMEOUT_S, f"{names['timeout']}{place}"),
            deadline_s=_parse_seconds(given["deadline"], _DEADLINE_S, f"{names['deadline']}{place}"),
            names=names,
            place=place,
        )

    def say(self, text: str) -> str:
        """Return text for a message, with the names of settings in place of ``{token}``, ``{ca}`` and so on, and of their ``{place}``."""
        return text.format(**self.names, place=self.place)

    def hide(self, text: str) -> str:
        """Return text of a server without the secrets, which it may repeat."""
        for secret in self.secrets:
            if len(secret) >= _LEAST_HIDDEN:
                text = text.replace(secret, _HIDDEN)
        return text

    def tls_context(self) -> ssl.SSLContext:
        """Return the settings of TLS.

        Raises
        ------
        OptionError
            A file with certificates cannot be read.
        """
        import ssl

        try:
            context = ssl.create_default_context(cafile=self.ca)
        except OSError as error:
            raise OptionError(
                f"{self.names['ca']}={self.ca}{self.place}: not a readable PEM file of certificates ({error})"
            ) from None
        if not self.verify:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if self.certificate is not None:
            try:
                context.load_cert_chain(self.certificate, self.key, password="")  # an empty password prevents a prompt
            except (OSError, ValueError) as error:
                raise OptionError(
                    f"{self.names['cert']}={self.certificate}{self.place}: not a readable PEM file ({error})",
                    hint=f"the file must hold the certificate and its key, or set {self.names['key']}; the key must have no password",
                ) from None
        return context


def _parse_headers(text: str, source: str) -> tuple[dict[str, str], list[str]]:
    headers, secrets = {}, []
    for line in filter(str.strip, text.splitlines()):
        name, colon, value = line.partition(":")
        if not colon or not _NAME.fullmatch(name.strip()):
            raise OptionError(f"{source}: malformed header", hint="write one header per line, as Name: value")
        headers[name.strip()] = _checked(value.strip(), source)
        secrets += [value.strip(), *value.split()]
    return headers, secrets


def _checked(value: str, source: str) -> str:
    # The errors of http.client for such values contain the value.
    if not _VALUE.fullmatch(value):
        raise OptionError(f"{source} contains a character that HTTP headers do not allow", hint="use printable ASCII")
    return value


def _parse_seconds(text: str, default: float, source: str) -> float:
    try:
        seconds = float(text or default)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise OptionError(f"{source}={text!r} is not a number of seconds above 0")
    return seconds
