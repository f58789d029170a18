"""Clients for the servers that addresses name."""

from __future__ import annotations

from statetool.operations.cluster.address import JobAddress
from statetool.operations.cluster.client import RestClient


def open_server(address: JobAddress) -> tuple[RestClient, JobAddress]:
    """Return a client for the server of an address, and the address of the job on it.

    Raises
    ------
    StatetoolError
        As :func:`statetool.operations.cluster.resources.find_resource`.
    """
    if address.resource is None:
        return RestClient(address.server), address
    from statetool.operations.cluster.resources import find_resource

    resource = find_resource(address)
    return resource.client(), resource.address
