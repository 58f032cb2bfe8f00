"""Figures: benchmarks and retrieval evaluation."""
