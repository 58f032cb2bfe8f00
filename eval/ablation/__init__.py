"""Search taken apart: legs, fusion and their variants on one base, seconds an experiment."""
