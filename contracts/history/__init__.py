"""Frozen old shapes and the functions that lift them to the current one."""
