"""Prompt-injection scan and verdicts."""
