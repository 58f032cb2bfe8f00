"""Logs that releases wrote, for `tests.recorded`; `python -m tests.releases.make` adds one."""
