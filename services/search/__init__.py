"""Questions and the read projection."""
