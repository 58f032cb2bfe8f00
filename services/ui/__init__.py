"""The web page, sign-in and the front door."""
