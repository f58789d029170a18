"""A running Kafka, asked with ``kafka-python``: settings of its clients, and their errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final, TypeVar

from statetool.errors import ConnectionFailedError, MissingDependencyError, OptionError
from statetool.io.threads import call_with_timeout

TIMEOUT_MS: Final = 30_000
#: All requests of a command together may take this many times the timeout of one.
_REQUESTS: Final = 4
Answer = TypeVar("Answer")


def kafka_package(name: str) -> Any:
    """Return a module of ``kafka-python``.

    Raises
    ------
    MissingDependencyError
        ``kafka-python`` is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingDependencyError(
            "asking Kafka needs the package kafka-python", hint="pip install 'statetool[kafka]'"
        ) from error


def client_settings(bootstrap_servers: str, settings: Mapping[str, Any] | None, timeout_ms: int) -> dict[str, Any]:
    """Return the settings of a client. ``settings`` override all but the brokers."""
    return {
        "client_id": "statetool",
        "request_timeout_ms": timeout_ms,
        "bootstrap_timeout_ms": timeout_ms,
        **(settings or {}),
        "bootstrap_servers": [broker.strip() for broker in bootstrap_servers.split(",")],
    }


def ask_kafka(
    bootstrap_servers: str, wanted: str, timeout_ms: int, ask: Callable[[], Answer], instead: str = ""
) -> Answer:
    """Return what Kafka answers, or stop waiting.

    Parameters
    ----------
    wanted
        What Kafka is asked for, for messages.
    timeout_ms
        Timeout of one request.
    instead
        Another way to get it, for messages.

    Raises
    ------
    OptionError
        ``kafka-python`` does not know a setting.
    ConnectionFailedError
        Kafka did not answer in time, or refused.
    """
    with _asking(bootstrap_servers, wanted, instead):
        return call_with_timeout(_REQUESTS * timeout_ms / 1000, ask)


@contextmanager
def _asking(bootstrap_servers: str, wanted: str, instead: str) -> Iterator[None]:
    """Raise errors of ``kafka-python`` as ours."""
    errors = kafka_package("kafka.errors")
    try:
        yield
    except (AssertionError, errors.KafkaConfigurationError, TypeError) as error:
        raise OptionError(f"settings of kafka-python: {error}") from error
    except (errors.KafkaError, OSError, ValueError) as error:
        raise ConnectionFailedError(
            f"Kafka at {bootstrap_servers} did not return {wanted}: {error!r}",
            hint=f"check brokers and settings (security_protocol=...){instead}",
        ) from error
