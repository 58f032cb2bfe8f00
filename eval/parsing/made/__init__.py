"""Documents made here, so that their structure is known and nobody has seen them before."""
