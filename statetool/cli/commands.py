"""All commands, by section of ``statetool --help``, with their module and their help in one line."""

from __future__ import annotations

from typing import Final

#: Each command is defined at ``module:name`` and imported when it runs. Its help in one line is the first line of its docstring.
COMMANDS: Final = {
    "Inspect": {
        "info": ("statetool.cli.info:info", "Show a snapshot's id, format version and operators"),
        "ls": ("statetool.cli.info:ls", "List tables of a snapshot, or snapshots in a directory"),
        "states": ("statetool.cli.info:states", "List states with their types"),
        "files": ("statetool.cli.info:files", "List the files and inline bytes that hold state"),
        "schema": ("statetool.cli.tables:schema", "Show the schema of a table"),
        "head": ("statetool.cli.tables:head", "Show the first rows of a table"),
        "count": ("statetool.cli.tables:count", "Count the rows of tables"),
        "sql": ("statetool.cli.sql:sql", "Query tables with SQL, without Spark"),
        "stats": ("statetool.cli.inspect:stats", "Find large states, keys and values, skew, or growth"),
        "declare": ("statetool.cli.declare:declare", "Show the declarations of classes in the job's jar"),
        "browse": ("statetool.cli.browse:browse", "Browse operators, tables and rows in the terminal"),
        "shell": ("statetool.cli.shell:shell", "Open a snapshot at a Python prompt"),
        "report": ("statetool.cli.report:report", "Write an HTML report about a snapshot"),
    },
    "Check and compare": {
        "check": ("statetool.cli.inspect:check", "Check whether a job would restore from a snapshot"),
        "verify": ("statetool.cli.verify:verify", "Check that a snapshot is complete and undamaged"),
        "diff": ("statetool.cli.inspect:diff", "Compare two snapshots, key by key"),
    },
    "Write": {
        "transform": ("statetool.cli.migrate:transform", "Change values of states with SQL expressions"),
        "migrate": ("statetool.cli.migrate:migrate", "Convert states to the types of a new job"),
        "catch-up": ("statetool.cli.migrate:catch_up", "Migrate a savepoint, reusing the migration of an older one"),
        "upgrade": ("statetool.cli.upgrade:upgrade", "Write a snapshot for a new release and new classes"),
        "rescale": ("statetool.cli.rewrite:rescale", "Change the max parallelism of operators"),
        "convert": ("statetool.cli.rewrite:convert", "Convert a snapshot to a canonical savepoint"),
        "uid": ("statetool.cli.rewrite:uid", "Change uids of operators"),
        "drop": ("statetool.cli.rewrite:drop", "Remove operators, or single states"),
        "state": ("statetool.cli.rewrite:state", "Rename states of an operator"),
        "graft": ("statetool.cli.merge:graft", "Add operators of another snapshot"),
        "merge": ("statetool.cli.merge:merge", "Merge two snapshots into one"),
        "split": ("statetool.cli.merge:split", "Split a snapshot into those of two jobs"),
        "move-state": ("statetool.cli.merge:move_state", "Move keyed states to another operator"),
        "set": ("statetool.cli.values:set_values", "Set values and timers of one key"),
        "purge": ("statetool.cli.values:purge", "Remove expired values and overdue timers"),
        "erase": ("statetool.cli.erase:erase", "Remove all state of some keys"),
        "keep": ("statetool.cli.erase:keep", "Remove all state except that of some keys"),
        "sample": ("statetool.cli.erase:sample", "Write a small savepoint for tests"),
        "copy": ("statetool.cli.rewrite:copy", "Copy a snapshot with all files that it needs"),
        "export": ("statetool.cli.tables:export", "Export a table to files, Delta or Iceberg"),
    },
    "Sources and sinks": {
        "sources": ("statetool.cli.connectors:sources", "Inspect and change offsets and splits of sources"),
        "sinks": ("statetool.cli.connectors:sinks", "Inspect and drop uncommitted transactions of sinks"),
    },
    "Jobs": {
        "jobs": ("statetool.cli.jobs:jobs", "List jobs of a cluster with their checkpoints"),
        "savepoint": ("statetool.cli.jobs:savepoint", "Take a savepoint of a running job and print its path"),
        "checkpoint": ("statetool.cli.jobs:checkpoint", "Take a checkpoint of a running job and print its path"),
    },
    "Checkpoints": {
        "advise": ("statetool.cli.checkpoints:advise", "Suggest checkpoint settings from a job's checkpoints"),
        "lint": ("statetool.cli.checkpoints:lint", "Check a Flink configuration for conflicting settings"),
        "chain": ("statetool.cli.directories:chain", "Show which files retained checkpoints share"),
        "orphans": ("statetool.cli.directories:orphans", "Find files that no retained snapshot needs"),
        "metrics": ("statetool.cli.metrics:metrics", "Print or serve state sizes as metrics for Prometheus"),
    },
    "Setup": {
        "demo": ("statetool.cli.installation:demo", "Query and edit a bundled savepoint"),
        "doctor": ("statetool.cli.installation:doctor", "Check this installation, and optionally a snapshot"),
        "kernels": ("statetool.cli.installation:kernels", "Show where compiled kernels are stored, or ship them"),
        "completion": ("statetool.cli.installation:completion", "Install completion for bash, zsh or fish"),
        "mcp": ("statetool.cli.mcp:mcp", "Serve snapshots to AI assistants over MCP"),
    },
}

#: Words of other tools, and the commands that do what they mean.
WORDS: Final = {
    "cat": ("head", "sql"),
    "delete": ("drop", "erase", "orphans"),
    "describe": ("info", "schema", "states"),
    "get": ("head", "info"),
    "help": ("--help",),
    "query": ("sql",),
    "remove": ("drop", "erase", "orphans"),
    "rm": ("drop", "erase", "orphans"),
    "select": ("sql",),
    "show": ("info", "head"),
    "update": ("set", "transform"),
    "version": ("--version",),
}
