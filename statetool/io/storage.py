"""Storage calls through fsspec: backend errors become statetool errors with the cause and the remedy.

Backends raise errors of the libraries below them (botocore, aiohttp, google, azure, pyarrow). These are recognised by their modules,
so none of these libraries is imported here.
"""

from __future__ import annotations

import errno
from concurrent.futures import Future
from functools import wraps
from typing import Any, Final

from statetool.errors import StatetoolError, StorageError

#: Libraries below fsspec's file systems that define error classes.
_LIBRARIES: Final = frozenset(
    [
        "adlfs",
        "aiobotocore",
        "aiohttp",
        "aiohttp_retry",
        "azure",
        "botocore",
        "boto3",
        "fsspec",
        "gcsfs",
        "google",
        "httpx",
        "msal",
        "ossfs",
        "paramiko",
        "pyarrow",
        "requests",
        "s3fs",
        "smbprotocol",
        "urllib3",
    ]
)
#: Errors about names, which callers handle separately.
_OF_NAMES: Final = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError)
_OF_STORAGE: Final = (TimeoutError, ConnectionError, PermissionError)
_LONGEST: Final = 300
_CREDENTIALS: Final = {
    "s3": "AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
_FAMILIES: Final = {
    "s3a": "s3",
    "s3n": "s3",
    "s3p": "s3",
    "gcs": "gs",
    "abfs": "az",
    "abfss": "az",
    "wasb": "az",
    "wasbs": "az",
}
#: Causes, each with the lower-case words that identify it in the name or text of an error.
_CAUSES: Final = (
    (("expired",), "the credentials have expired", "credentials"),
    (
        ("credential", "defaultcredentialserror", "clientauthentication", "invalidaccesskey", "signaturedoesnotmatch"),
        "no valid credentials",
        "credentials",
    ),
    (("nosuchbucket", "bucket does not exist", "containernotfound"), "no such bucket", "bucket"),
    (("slowdown", "throttl", "too many requests", "toomanyrequests", "503", "429", "busy"), "too busy", "busy"),
    (("libjvm", "libhdfs", "hadoop", "classpath", "java_home"), "Hadoop's client cannot be loaded", "hadoop"),
    (("permissionerror", "accessdenied", "access denied", "forbidden", "403", "401"), "access denied", "credentials"),
    (
        ("timeout", "timed out", "connect", "endpoint", "resolve", "unreachable", "ssl", "dns"),
        "no answer",
        "network",
    ),
)


def storage_error(error: BaseException, uri: str) -> StorageError:
    """Return statetool's error for a storage error, with the cause and the remedy."""
    kind = type(error).__name__
    first = next(iter(str(error).strip().splitlines()), "")
    first = first if len(first) <= _LONGEST else f"{first[:_LONGEST]}..."
    words = f"{kind} {first}".lower()
    if isinstance(error, OSError) and error.errno == errno.EBUSY:
        words += " busy"
    if _is_timeout(error):
        words += " timeout"
    cause, cure = next(((c, h) for texts, c, h in _CAUSES if any(t in words for t in texts)), ("storage failed", ""))
    detail = kind if not first or kind in first else f"{kind}: {first}"
    return StorageError(f"cannot access {uri}: {cause} ({detail.rstrip('.')})", hint=_hint(cure, uri))


def _is_timeout(error: BaseException) -> bool:
    """Return True for a timeout. Before Python 3.11 asyncio has a class for it that is not the builtin, and is slow to import."""
    return any(kind.__name__ == "TimeoutError" for kind in type(error).__mro__)


def _hint(cure: str, uri: str) -> str:
    scheme = uri.partition("://")[0]
    family = _FAMILIES.get(scheme, scheme)
    match cure:
        case "credentials":
            names = _CREDENTIALS.get(family, "those that its fsspec package documents")
            return f"set credentials that may access it: {names}"
        case "bucket":
            return "check the name of the bucket"
        case "busy":
            return "try again later, with fewer threads or tasks"
        case "hadoop":
            return "install Hadoop's client, set JAVA_HOME and HADOOP_HOME, and export CLASSPATH=$($HADOOP_HOME/bin/hadoop classpath --glob)"
        case "network":
            return f"check the network{' and AWS_ENDPOINT_URL' if family == 's3' else ''}, or try again later"
    return ""


def _is_of_library(error: BaseException) -> bool:
    """Return True if a library below fsspec defines the class of an error, or a base of it."""
    return any(base.__module__.partition(".")[0] in _LIBRARIES for base in type(error).__mro__)


class Storage:
    """An fsspec file system or open file that raises statetool's errors.

    Errors about names (not found, already exists) and other plain system errors are not converted, so that callers can distinguish them.
    """

    __slots__ = ("_target", "_uri")

    def __init__(self, target: Any, uri: str) -> None:
        self._target = target
        self._uri = uri

    def __setattr__(self, name: str, value: Any) -> None:
        if name in Storage.__slots__:
            object.__setattr__(self, name, value)
        else:
            setattr(self._target, name, value)

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._target, name)
        return self._guarded(member) if callable(member) else member

    def begin(self, method: str, *args: Any, **kwargs: Any) -> Future[Any] | None:
        """Call a coroutine method in the event loop of the client without waiting for its result.

        Returns ``None`` if the client has no event loop. Errors of the result are those of the client: see :meth:`result_of`.
        """
        if not getattr(self._target, "async_impl", False) or getattr(self._target, "asynchronous", False):
            return None
        import asyncio

        return asyncio.run_coroutine_threadsafe(getattr(self._target, method)(*args, **kwargs), self._target.loop)

    def result_of(self, begun: Future[Any]) -> Any:
        """Wait for the result of a call that has begun; errors are converted like those of other calls."""
        return self._guarded(begun.result)()

    def _guarded(self, call: Any) -> Any:
        @wraps(call)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            try:
                result = call(*args, **kwargs)
            except Exception as error:
                if (ours := self._ours(error)) is error:
                    raise
                raise ours from error
            if isinstance(result, list):  # results of several requests, some of which may be errors
                return [self._ours(item) if isinstance(item, Exception) else item for item in result]
            is_file = hasattr(result, "seek") and hasattr(result, "close")
            return Storage(result, self._uri) if is_file else result

        return guarded

    def _ours(self, error: Exception) -> Exception:
        """Return statetool's error for a storage error; errors about names and all others stay unchanged."""
        if isinstance(error, (StatetoolError, *_OF_NAMES)):
            return error
        return (
            storage_error(error, self._uri)
            if isinstance(error, _OF_STORAGE) or _is_timeout(error) or _is_of_library(error)
            else error
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Storage) and self._target is other._target

    def __hash__(self) -> int:
        return id(self._target)

    def __enter__(self) -> Storage:
        self._target.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._guarded(self._target.__exit__)(*exc)
