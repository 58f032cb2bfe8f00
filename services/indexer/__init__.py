"""Passages, embeddings, both indexes, rebuilds."""
