"""Paths that servers and metadata name, unlike those that users name: they must not lead to other servers than storage.

A job keeps its state in the file system of its machines, HDFS or an object store. An answer or metadata that names anything else, such as
``http:``, would have a client of this process send requests to any server, also to those that only this machine can reach.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from statetool.io.files import is_local

if TYPE_CHECKING:
    import ipaddress

#: Schemes of storage, without those whose host answers any HTTP request.
STORAGE_SCHEMES: Final = frozenset(
    [
        "hdfs",
        "viewfs",
        "o3fs",
        "ofs",
        "maprfs",
        "alluxio",
        "jfs",
        "s3",
        "s3a",
        "s3n",
        "s3p",
        "gs",
        "gcs",
        "abfs",
        "abfss",
        "wasb",
        "wasbs",
        "az",
        "adl",
        "oss",
        "cos",
        "cosn",
        "obs",
        "tos",
        "oci",
        "swift",
        "lakefs",
    ]
)
_METADATA_NAMES: Final = frozenset(["metadata", "metadata.google.internal", "metadata.goog", "instance-data"])
#: Addresses of clouds' metadata services outside of the link-local networks: Alibaba, Azure, Oracle, AWS.
_METADATA_ADDRESSES: Final = frozenset(["100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254"])


def may_open(uri: str, named: Iterable[str]) -> bool:
    """Return True if a path that a server or metadata names may be opened.

    Parameters
    ----------
    named
        Paths that the user has named. Their schemes and hosts may be opened.

    Examples
    --------
    >>> may_open("s3://bucket/shared/a", []), may_open("http://169.254.169.254/latest", []), may_open("/checkpoints", [])
    (True, False, True)
    >>> may_open("sftp://host/a", ["sftp://host/chk-1"])
    True
    """
    if is_local(uri):
        return True
    scheme, authority = origin_of(uri)
    if any((scheme, authority) == origin_of(path) for path in named if not is_local(path)):
        return True
    return scheme in STORAGE_SCHEMES and not _is_link_local(authority)


def origin_of(uri: str) -> tuple[str, str]:
    """Return the scheme and the authority of a URI."""
    scheme, _, rest = uri.partition("://")
    return scheme.lower(), rest.partition("/")[0].lower()


def _is_link_local(authority: str) -> bool:
    """Return True for the host of a link-local address, in any notation, or of a cloud's metadata service."""
    import ipaddress  # only for paths that are not local
    import socket

    host = authority.rpartition("@")[2]
    host = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    host = host.partition("%")[0].rstrip(".")
    if host in _METADATA_NAMES:
        return True
    with suppress(ValueError):
        return _refuses(ipaddress.ip_address(host))
    with suppress(OSError, UnicodeError):  # the notations that resolvers accept: 2852039166, 0xA9FEA9FE, 169.254.43518
        return _refuses(ipaddress.ip_address(socket.inet_aton(host)))
    return False


def _refuses(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_link_local or str(address) in _METADATA_ADDRESSES
