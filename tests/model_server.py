"""A model behind a real socket that says what a test tells it to say."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from kernel.ai import AiSettings

Script = Callable[[dict[str, Any], asyncio.StreamWriter], Awaitable[bytes | None]]
"""Given a request's JSON: the whole answer; None: the script wrote by itself."""


@dataclass
class ModelServer:
    """Requests that came, and the address."""

    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)
    script: Script | None = None

    @property
    def settings(self) -> AiSettings:
        """Those that lead here."""
        return AiSettings(url=self.url, key="the-key", model="judge-1")


def http(body: bytes | str, status: int = 200, **headers: str) -> bytes:
    """An HTTP answer."""
    data = body.encode() if isinstance(body, str) else body
    lines = {"content-type": "application/json", "content-length": str(len(data))}
    lines |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"HTTP/1.1 {status} X\r\n{head}\r\n".encode() + data


def completion(content: str | None, finish: str = "stop", **message: Any) -> str:
    """What the protocol says for one answer."""
    said = {"role": "assistant", "content": content} | message
    choice = {"index": 0, "finish_reason": finish, "message": said}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    return json.dumps(
        {
            "id": "1", "object": "chat.completion", "created": 1, "model": "judge-1",
            "choices": [choice], "usage": usage,
        }
    )  # fmt: skip


def says(content: Callable[[dict[str, Any]], str]) -> Script:
    """A model that answers every request with what `content` makes of it."""

    async def script(request: dict[str, Any], _: asyncio.StreamWriter) -> bytes:
        return http(completion(content(request)))

    return script


@asynccontextmanager
async def model_server(script: Script | None = None) -> AsyncIterator[ModelServer]:
    """The server, while it runs."""
    server = ModelServer(script=script)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                names = dict(
                    line.lower().split(": ", 1) for line in head.splitlines()[1:] if ": " in line
                )
                request = json.loads(await reader.readexactly(int(names["content-length"])))
                server.headers.append(head)
                server.requests.append(request)
                assert server.script is not None
                answer = await server.script(request, writer)
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
    try:
        yield server
    finally:
        listening.close()


@contextmanager
def model_in_thread(script: Script) -> Iterator[str]:
    """Its address, while it runs in a thread of its own."""
    ready, loop = threading.Event(), asyncio.new_event_loop()
    found: list[str] = []

    async def run() -> None:
        async with model_server(script) as server:
            found.append(server.url)
            ready.set()
            await asyncio.Event().wait()

    task = loop.create_task(run())

    def work() -> None:
        try:
            loop.run_until_complete(task)
        except asyncio.CancelledError:
            pass
        finally:
            loop.close()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    ready.wait(30)
    try:
        yield found[0]
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(10)
