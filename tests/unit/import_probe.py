"""`python import_probe.py ROOT MODULE...`: import modules one after the other; print as JSON what
each did to the world outside the process and which top-level packages it brought along."""

import contextlib
import importlib
import json
import os
import sys
from typing import Any

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_EFFECTS = frozenset({
    "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink", "os.chmod",
    "os.chown", "os.truncate", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.kill",
    "os.putenv", "os.unsetenv", "subprocess.Popen",
    "socket.__new__", "socket.connect", "socket.bind", "socket.getaddrinfo",
})  # fmt: skip
_HARMLESS = ("/urllib3/util/connection.py", "/numpy/__init__.py", "/numpy/_core/__init__.py")
"""urllib3 looks whether there is IPv6, numpy sets and unsets a variable around its own import."""

effects: list[str] = []


def _hook(name: str, arguments: tuple[Any, ...]) -> None:
    if name == "open":
        path, _, flags = arguments
        if isinstance(flags, int) and flags & _WRITES:
            effects.append(f"open {path}")
    elif name in _EFFECTS and not _by_harmless():
        effects.append(f"{name} {str(arguments)[:100]}")


def _by_harmless() -> bool:
    frame = sys._getframe(2)
    while frame.f_back and "/site-packages/" not in frame.f_code.co_filename:
        frame = frame.f_back  # out of the standard library, to who called it
    return frame.f_code.co_filename.endswith(_HARMLESS)


def _import(module: str) -> dict[str, list[str]]:
    effects.clear()
    before = set(sys.modules)
    error = []
    try:
        with contextlib.redirect_stdout(sys.stderr):
            importlib.import_module(module)
    except BaseException as raised:  # noqa: BLE001 - whatever it is, it is the answer
        error = [f"{type(raised).__name__}: {raised}"]
    loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
    return {"effects": list(effects), "loaded": sorted(loaded), "error": error}


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    sys.addaudithook(_hook)
    found = {module: _import(module) for module in sys.argv[2:]}
    sys.stdout.write(json.dumps(found))
