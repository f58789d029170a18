"""Whether Flink would restore a snapshot into a job: the rules of Flink's own serializers, backends and operators."""
