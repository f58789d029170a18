"""Restore check of a snapshot for a job: the compatibility rules of Flink's serializers, backends and operators."""
