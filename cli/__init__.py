"""The `kb` command and the supervisor behind `kb up`."""
