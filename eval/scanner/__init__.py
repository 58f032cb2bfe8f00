"""Measures the scanner like a detector: recall, false alarms, languages, speed, peers."""
