"""A running Kafka, asked with ``kafka-python``: settings of its clients, and their errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final

from statetool.errors import ConnectionFailedError, MissingDependencyError, OptionError

TIMEOUT_MS: Final = 30_000


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


@contextmanager
def asking_kafka(bootstrap_servers: str, wanted: str, instead: str = "") -> Iterator[None]:
    """Raise errors of ``kafka-python`` as ours. ``wanted`` is what Kafka was asked for, ``instead`` another way to get it.

    Raises
    ------
    OptionError
        ``kafka-python`` does not know a setting.
    ConnectionFailedError
        Kafka did not answer in time, or refused.
    """
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
