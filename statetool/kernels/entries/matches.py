"""Kernel that follows the matches of complex event processing back to their first events.

A match stores the node of its last event, and a version. A node has edges to the nodes of earlier events. The edge to follow is the one
with whose version the current version is compatible. The edge's version then becomes the current one.
"""

from __future__ import annotations

from typing import Final

from statetool.kernels.core.codes import OK
from statetool.kernels.core.jit import jit

#: Targets of edges that lead to no node: the match began here; the buffer lacks the node.
BEGIN: Final = -1
MISSING: Final = -2
#: Errors of a match: an edge leads to a missing node; more than one path leads back; a path does not end.
NO_NODE: Final = 1
MANY_WAYS: Final = 2
NO_END: Final = 3


@jit
def _compatible(version, start, end, other, other_start, other_end):
    """Return True if a Dewey number starts with another one, or differs only in the last digit, which is larger."""
    size = end - start
    n = other_end - other_start
    if size < n:
        return False
    for k in range(n):
        if version[start + k] != other[other_start + k]:
            return size == n and k == n - 1 and version[start + k] > other[other_start + k]
    return True


@jit
def match_paths(
    last, version_at, versions, edge_at, target, edge_version_at, edge_versions, node, edge, place, lengths, path
):
    """Find the nodes of each match, from its first event to its last.

    Parameters
    ----------
    last
        int64[m]: the node of each match's last event, negative if there is none.
    version_at, versions
        int64[m + 1], int64[]: the digits of each match's version.
    edge_at, target, edge_version_at, edge_versions
        int64[n + 1]: the edges of each node; int64[e]: the node that each leads to, or ``BEGIN`` or ``MISSING``; their versions.
    node, edge
        int64[n]: scratch.
    place
        int64[m]: start of each match's nodes in ``path``.
    lengths
        int64[m], out: number of nodes, 0 if no path leads back.
    path
        int64[], out; empty to compute only the lengths.
    """
    for i in range(last.shape[0]):
        lengths[i] = 0
        if last[i] < 0:
            continue
        depth = 0
        node[0] = last[i]
        edge[0] = edge_at[last[i]]
        while depth >= 0:
            j = edge[depth]
            if j == edge_at[node[depth] + 1]:
                depth -= 1
                continue
            edge[depth] = j + 1
            start, end = edge_version_at[j], edge_version_at[j + 1]
            if depth == 0:
                fits = _compatible(versions, version_at[i], version_at[i + 1], edge_versions, start, end)
            else:
                b = edge[depth - 1] - 1
                fits = _compatible(edge_versions, edge_version_at[b], edge_version_at[b + 1], edge_versions, start, end)
            if not fits:
                continue
            if target[j] == MISSING:
                return NO_NODE, i
            if target[j] != BEGIN:
                depth += 1
                if depth == node.shape[0]:
                    return NO_END, i
                node[depth] = target[j]
                edge[depth] = edge_at[target[j]]
                continue
            if lengths[i] > 0:
                return MANY_WAYS, i
            lengths[i] = depth + 1
            if path.shape[0] > 0:
                for k in range(depth + 1):
                    path[place[i] + k] = node[depth - k]
    return OK, 0
