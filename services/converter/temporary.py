"""Where the folders of parsing children are made."""

import os
from pathlib import Path


class NoTemporaryFolder(Exception):
    """There is no folder to parse in; the message says what to do."""


def temporary_folder() -> Path:
    """`TMPDIR`, else the system's, and never another one.

    Python's own choice goes on to the next folder, in the end to the working one, where the first
    is full or missing: what strangers wrote would then lie where nobody looks for it.
    """
    return Path(os.environ.get("TMPDIR") or "/tmp").absolute()  # noqa: S108 - named, not a file


def require_temporary_folder() -> None:
    """Stop a start that no document could be parsed after. A full disk is no reason: it passes.

    Raises:
        NoTemporaryFolder: it is missing, or nothing can be written there.
    """
    folder = temporary_folder()
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise NoTemporaryFolder(
            f"no folder that can be written to: {folder}; parsing needs one, set TMPDIR to it"
        )
