"""Findings of ``check``, ``verify``, ``diff``, ``sources check``, ``lint`` and ``advise``, in a form that text and HTML share."""
