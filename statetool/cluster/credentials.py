"""Credentials and connection settings for Flink's REST API, from the environment.

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

CA: Final = "STATETOOL_FLINK_CA"
CERTIFICATE: Final = "STATETOOL_FLINK_CERT"
USER: Final = "STATETOOL_FLINK_USER"
PASSWORD: Final = "STATETOOL_FLINK_PASSWORD"
TOKEN: Final = "STATETOOL_FLINK_TOKEN"
HEADERS: Final = "STATETOOL_FLINK_HEADERS"
TIMEOUT: Final = "STATETOOL_FLINK_TIMEOUT"
_SECONDS: Final = 10.0
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
        Where the credentials come from, for messages: the variables that set them. Empty without credentials.
    key
        File with the key of ``certificate``, if it is not in the same file.
    verify
        Whether the certificate of the server is verified.
    timeout_s
        Seconds to wait for a connection, and for each part of an answer.
    """

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    source: str = ""
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    verify: bool = True
    timeout_s: float = _SECONDS

    @classmethod
    def from_environment(cls) -> Credentials:
        """Return the credentials that the variables ``STATETOOL_FLINK_*`` set.

        Raises
        ------
        OptionError
            A variable is malformed, or two of them contradict each other. The message has no value of them.
        """
        values = {name: os.environ.get(name) or "" for name in (USER, PASSWORD, TOKEN, HEADERS)}
        if values[TOKEN] and (values[USER] or values[PASSWORD]):
            raise OptionError(f"{TOKEN} and {USER} are both set", hint="unset one of them")
        if bool(values[USER]) != bool(values[PASSWORD]):
            raise OptionError(f"only one of {USER} and {PASSWORD} is set", hint="set both")
        headers, secrets = _parse_headers(values[HEADERS])
        if values[TOKEN]:
            token = values[TOKEN].strip()
            headers["Authorization"] = f"Bearer {_checked(token, TOKEN)}"
            secrets.append(token)
        elif values[USER]:
            if ":" in values[USER]:
                raise OptionError(f"{USER} contains a colon, which basic authentication does not support")
            encoded = base64.b64encode(f"{values[USER]}:{values[PASSWORD]}".encode("utf-8", "surrogateescape")).decode()
            headers["Authorization"] = f"Basic {encoded}"
            secrets += [encoded, values[PASSWORD]]
        return cls(
            headers=headers,
            secrets=tuple(sorted(secrets, key=len, reverse=True)),
            source=" and ".join(name for name in (USER, PASSWORD, TOKEN, HEADERS) if values[name]),
            ca=os.environ.get(CA) or None,
            certificate=os.environ.get(CERTIFICATE) or None,
            timeout_s=_parse_timeout(os.environ.get(TIMEOUT) or ""),
        )

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
            raise OptionError(f"{CA}={self.ca}: not a readable PEM file of certificates ({error})") from None
        if not self.verify:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if self.certificate is not None:
            try:
                context.load_cert_chain(self.certificate, self.key, password="")  # an empty password prevents a prompt
            except (OSError, ValueError) as error:
                raise OptionError(
                    f"{CERTIFICATE}={self.certificate}: not a readable PEM file ({error})",
                    hint="the file must hold the certificate and its key, without a password",
                ) from None
        return context


def _parse_headers(text: str) -> tuple[dict[str, str], list[str]]:
    headers, secrets = {}, []
    for line in filter(str.strip, text.splitlines()):
        name, colon, value = line.partition(":")
        if not colon or not _NAME.fullmatch(name.strip()):
            raise OptionError(f"{HEADERS} is malformed", hint="write one header per line, as Name: value")
        headers[name.strip()] = _checked(value.strip(), HEADERS)
        secrets += [value.strip(), *value.split()]
    return headers, secrets


def _checked(value: str, variable: str) -> str:
    # The errors of http.client for such values contain the value.
    if not _VALUE.fullmatch(value):
        raise OptionError(f"{variable} contains a character that HTTP headers do not allow", hint="use printable ASCII")
    return value


def _parse_timeout(text: str) -> float:
    try:
        seconds = float(text or _SECONDS)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise OptionError(f"{TIMEOUT}={text!r} is not a number of seconds above 0")
    return seconds
