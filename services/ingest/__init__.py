"""Bytes in: document identity, versions, valid time."""
