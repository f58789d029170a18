"""Kryo as Flink uses it: 2.24 in Flink 1.x, 5 in Flink 2.x; references on, no registration required."""

from __future__ import annotations

from statetool.serializers.kryo.serializer import SNAPSHOTS

__all__ = ["SNAPSHOTS"]
