"""Benchmarks. They measure what the command line and Spark's tasks do, so this process keeps freed memory as they do."""

from statetool.io.glibc import keep_freed_memory

keep_freed_memory()
