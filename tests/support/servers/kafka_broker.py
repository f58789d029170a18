"""A broker on loopback that supports the part of Kafka's protocol needed for end offsets."""

from __future__ import annotations

import socketserver
import struct
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Final

from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.metadata import ApiVersionsResponse, MetadataResponse

#: Supported versions: the last ones whose headers have no tagged fields.
_VERSIONS: Final = {ListOffsetsRequest: (0, 5), MetadataResponse: (0, 8), ApiVersionsResponse: (0, 2)}
_HEADER: Final = struct.Struct(">hhih")


class _Connection(socketserver.StreamRequestHandler):
    ends: ClassVar[Mapping[str, Mapping[int, int]]] = {}

    def handle(self) -> None:
        while length := self.rfile.read(4):
            data = self.rfile.read(int.from_bytes(length, "big"))
            key, version, correlation, named = _HEADER.unpack_from(data)
            body = self._answer(key, version, data[_HEADER.size + max(named, 0) :])
            body = correlation.to_bytes(4, "big") + body
            self.wfile.write(len(body).to_bytes(4, "big") + body)

    def _answer(self, key: int, version: int, request: bytes) -> bytes:
        if key == ApiVersionsResponse.API_KEY:
            return self._versions(version)
        if key == MetadataResponse.API_KEY:
            return self._metadata(version)
        assert key == ListOffsetsRequest.API_KEY, key
        message = ListOffsetsRequest.decode(request, version=version)
        topic, partition = ListOffsetsResponse.ListOffsetsTopicResponse, _partition_class()
        topics = [
            topic(
                name=t.name,
                partitions=[
                    partition(
                        partition_index=p.partition_index,
                        error_code=0,
                        timestamp=-1,
                        offset=self.ends[t.name][p.partition_index],
                        leader_epoch=0,
                        version=version,
                    )
                    for p in t.partitions
                ],
                version=version,
            )
            for t in message.topics
        ]
        return _encoded(ListOffsetsResponse(throttle_time_ms=0, topics=topics, version=version))

    def _versions(self, version: int) -> bytes:
        # A newer version is answered with the oldest, and the corresponding error.
        error, version = (0, version) if version <= _VERSIONS[ApiVersionsResponse][1] else (35, 0)
        keys = [
            ApiVersionsResponse.ApiVersion(api_key=c.API_KEY, min_version=low, max_version=high, version=version)
            for c, (low, high) in _VERSIONS.items()
        ]
        return _encoded(ApiVersionsResponse(error_code=error, api_keys=keys, throttle_time_ms=0, version=version))

    def _metadata(self, version: int) -> bytes:
        host, port = self.request.getsockname()
        topic = MetadataResponse.MetadataResponseTopic
        partition = topic.MetadataResponsePartition
        topics = [
            topic(
                error_code=0,
                name=name,
                is_internal=False,
                partitions=[
                    partition(
                        error_code=0,
                        partition_index=n,
                        leader_id=0,
                        leader_epoch=0,
                        replica_nodes=[0],
                        isr_nodes=[0],
                        offline_replicas=[],
                        version=version,
                    )
                    for n in ends
                ],
                version=version,
            )
            for name, ends in self.ends.items()
        ]
        broker = MetadataResponse.MetadataResponseBroker(node_id=0, host=host, port=port, rack=None, version=version)
        return _encoded(
            MetadataResponse(
                throttle_time_ms=0, brokers=[broker], cluster_id="c", controller_id=0, topics=topics, version=version
            )
        )


def _partition_class() -> Any:
    return ListOffsetsResponse.ListOffsetsTopicResponse.ListOffsetsPartitionResponse


def _encoded(message: Any) -> bytes:
    return bytes(message.encode())


@contextmanager
def kafka_broker(ends: Mapping[str, Mapping[int, int]]) -> Iterator[str]:
    """Run a broker with these end offsets; yield its address."""
    connection = type("Connection", (_Connection,), {"ends": ends})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), connection) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
