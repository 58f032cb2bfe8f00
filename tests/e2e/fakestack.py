"""`kb` over services that only say that they are healthy; the supervisor is the real one.

As `fakestack.py serve` it is such a service. Files in the data folder change how it behaves:
`die-<name>`: it ends at once; `child-<name>`: it has a child in a session of its own.
"""

import os
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Health(BaseHTTPRequestHandler):
    """200 on every path."""

    def do_GET(self) -> None:
        """Healthy."""
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Quiet."""


def serve(name: str) -> None:
    """One fake process."""
    data = Path(os.environ["KB_DATA"])
    if (data / f"die-{name}").exists():
        print("this service is broken on purpose", flush=True)
        time.sleep(0.05)
        sys.exit(1)
    if (data / f"child-{name}").exists():
        subprocess.Popen(["sleep", "600"], start_new_session=True)
    ThreadingHTTPServer(("127.0.0.1", int(os.environ["KB_PORT"])), Health).serve_forever()


def main() -> None:
    """The real `kb` over the fake stack."""
    from cli import main as cli
    from cli import stack
    from cli.plan import Spec
    from cli.supervisor import Stack

    def command(spec: Spec) -> list[str]:
        return [sys.executable, "-I", "-S", __file__, "serve", spec.name]

    def nats_config(users: object) -> str:
        assert isinstance(users, dict)
        password = users["admin"]
        return f'authorization {{ users: [ {{ user: "admin", password: "{password}" }} ] }}\n'

    fake = Stack(
        module="tests.e2e.fakestack",
        command=command,
        migrate=lambda _dsn, _passwords: None,
        nats_config=nats_config,
        provision=lambda _url: None,
        build_models=lambda _config: None,
    )
    stack.STACK = lambda: fake
    cli.main()


if __name__ == "__main__":
    serve(sys.argv[2]) if sys.argv[1:2] == ["serve"] else main()
