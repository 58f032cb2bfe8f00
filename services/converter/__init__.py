"""Deterministic parse and canonical Markdown."""
