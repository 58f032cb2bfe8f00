"""Speed, printed as ratios of one run."""
