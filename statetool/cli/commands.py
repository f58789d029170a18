"""All commands, by section of ``statetool --help``, with their module and their help in one line."""

from __future__ import annotations

from typing import Final

#: Each command is defined at ``module:name`` and imported when it runs. Its help in one line is the first line of its docstring.
COMMANDS: Final = {
    "Inspect": {
        "info": ("statetool.cli.read.info:info", "Show a snapshot's id, format version and operators"),
        "ls": ("statetool.cli.read.info:ls", "List tables of a snapshot, or snapshots in a directory"),
        "states": ("statetool.cli.read.info:states", "List states with their types"),
        "files": ("statetool.cli.read.info:files", "List the files and inline bytes that hold state"),
        "schema": ("statetool.cli.read.tables:schema", "Show the schema of a table"),
        "head": ("statetool.cli.read.tables:head", "Show the first rows of a table"),
        "get": ("statetool.cli.read.get:get", "Look up the state and timers of one key"),
        "count": ("statetool.cli.read.tables:count", "Count the rows of tables"),
        "sql": ("statetool.cli.read.sql:sql", "Query tables with SQL, without Spark"),
        "stats": ("statetool.cli.read.inspect:stats", "Find large states, keys and values, skew, or growth"),
        "declare": ("statetool.cli.read.declare:declare", "Show the declarations of classes in the job's jar"),
        "browse": ("statetool.cli.read.browse:browse", "Browse operators, tables and rows in the terminal"),
        "shell": ("statetool.cli.read.shell:shell", "Open a snapshot at a Python prompt"),
        "serve": ("statetool.cli.operate.serve:serve", "Explore snapshots in a browser, and look up keys over HTTP"),
        "report": ("statetool.cli.read.report:report", "Write an HTML report about a snapshot"),
    },
    "Check and compare": {
        "check": ("statetool.cli.read.inspect:check", "Check whether a job would restore from a snapshot"),
        "verify": ("statetool.cli.read.verify:verify", "Check that a snapshot is complete and undamaged"),
        "diff": ("statetool.cli.read.inspect:diff", "Compare two snapshots, key by key"),
        "match": ("statetool.cli.read.match:match", "Match operators of two jobs whose ids differ"),
    },
    "Write": {
        "transform": ("statetool.cli.write.migrate:transform", "Change values of states with SQL expressions"),
        "migrate": ("statetool.cli.write.migrate:migrate", "Convert states to the types of a new job"),
        "catch-up": (
            "statetool.cli.write.migrate:catch_up",
            "Migrate a savepoint, reusing the migration of an older one",
        ),
        "upgrade": ("statetool.cli.write.upgrade:upgrade", "Write a snapshot for a new release and new classes"),
        "rescale": ("statetool.cli.write.rewrite:rescale", "Change the max parallelism of operators"),
        "convert": ("statetool.cli.write.rewrite:convert", "Convert a snapshot to a canonical or native savepoint"),
        "uid": ("statetool.cli.write.rewrite:uid", "Change uids of operators"),
        "drop": ("statetool.cli.write.rewrite:drop", "Remove operators, or single states"),
        "state": ("statetool.cli.write.rewrite:state", "Rename states of an operator"),
        "graft": ("statetool.cli.write.merge:graft", "Add operators of another snapshot"),
        "merge": ("statetool.cli.write.merge:merge", "Merge two snapshots into one"),
        "split": ("statetool.cli.write.merge:split", "Split a snapshot into those of two jobs"),
        "move-state": ("statetool.cli.write.merge:move_state", "Move keyed states to another operator"),
        "set": ("statetool.cli.write.values:set_values", "Set values and timers of one key"),
        "set-elements": (
            "statetool.cli.write.values:set_elements",
            "Change, remove or add elements of an operator state",
        ),
        "purge": ("statetool.cli.write.values:purge", "Remove expired values, overdue timers and obsolete windows"),
        "erase": ("statetool.cli.write.erase:erase", "Remove all state of some keys"),
        "keep": ("statetool.cli.write.erase:keep", "Remove all state except that of some keys"),
        "sample": ("statetool.cli.write.erase:sample", "Write a small savepoint for tests"),
        "copy": ("statetool.cli.write.rewrite:copy", "Copy a snapshot with all files that it needs"),
        "export": ("statetool.cli.read.tables:export", "Export a table to files, Delta or Iceberg"),
    },
    "Sources and sinks": {
        "sources": ("statetool.cli.write.connectors:sources", "Inspect and change offsets and splits of sources"),
        "sinks": ("statetool.cli.write.connectors:sinks", "Inspect and drop uncommitted transactions of sinks"),
    },
    "Jobs": {
        "jobs": ("statetool.cli.operate.jobs:jobs", "List jobs of a cluster with their checkpoints"),
        "savepoint": ("statetool.cli.operate.jobs:savepoint", "Take a savepoint of a running job and print its path"),
        "checkpoint": (
            "statetool.cli.operate.jobs:checkpoint",
            "Take a checkpoint of a running job and print its path",
        ),
    },
    "Checkpoints": {
        "advise": ("statetool.cli.operate.checkpoints:advise", "Suggest checkpoint settings from a job's checkpoints"),
        "lint": ("statetool.cli.operate.checkpoints:lint", "Check a Flink configuration for conflicting settings"),
        "chain": ("statetool.cli.operate.directories:chain", "Show which files retained checkpoints share"),
        "orphans": ("statetool.cli.operate.directories:orphans", "Find files that no retained snapshot needs"),
        "metrics": ("statetool.cli.operate.metrics:metrics", "Print or serve state sizes as metrics for Prometheus"),
    },
    "Setup": {
        "demo": ("statetool.cli.operate.installation:demo", "Query and edit a bundled savepoint"),
        "doctor": ("statetool.cli.operate.installation:doctor", "Check this installation, and optionally a snapshot"),
        "kernels": (
            "statetool.cli.operate.installation:kernels",
            "Show where compiled kernels are stored, or ship them",
        ),
        "completion": ("statetool.cli.operate.installation:completion", "Install completion for bash, zsh or fish"),
        "mcp": ("statetool.cli.operate.mcp:mcp", "Serve snapshots to AI assistants over MCP"),
    },
}

#: Words of other tools, and the commands that do what they mean.
WORDS: Final = {
    "cat": ("head", "sql"),
    "compare": ("diff", "check"),
    "delete": ("drop", "erase", "orphans"),
    "describe": ("info", "schema", "states"),
    "dump": ("export", "head"),
    "edit": ("set", "transform"),
    "find": ("get", "head", "sql"),
    "help": ("--help",),
    "inspect": ("info", "states", "browse"),
    "keys": ("count", "head"),
    "list": ("ls", "states", "jobs"),
    "lookup": ("get", "sql"),
    "open": ("browse", "shell"),
    "operators": ("info",),
    "print": ("head", "sql"),
    "query": ("sql",),
    "remove": ("drop", "erase", "orphans"),
    "rm": ("drop", "erase", "orphans"),
    "search": ("get", "head", "sql"),
    "select": ("sql",),
    "show": ("info", "head"),
    "tables": ("ls", "schema"),
    "update": ("set", "transform"),
    "validate": ("verify", "check"),
    "version": ("--version",),
    "view": ("info", "head", "browse"),
}
