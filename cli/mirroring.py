"""A git repository that shows the Markdown of all projects, made from the log."""

import fcntl
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from cli.output import clean
from cli.shelf import PAGE, Shelf, Shown, erasures, markdown, safe_stem
from contracts.envelope import Envelope
from kernel.blobs import Blobs
from kernel.errors import KbError, Refusal
from kernel.log import Log

_BRANCH = b"refs/heads/main"
_MARK = "citelog-mirror"
_WHO = b"citelog <citelog@localhost>"
_FILE, _FOLDER = 0o100644, 0o040000
_POSITION, _VERSION = "Position: ", "Version: "
_VERBS = {
    "Indexed": "Add",
    "Superseded": "Supersede",
    "Reinstated": "Reinstate",
    "Released": "Release",
    "Rejected": "Reject",
    "ScanVerdict": "Take back",
    "Erased": "Erase",
}
"""What may change what is shown, and the first word of its commit."""


@dataclass(frozen=True)
class Mirrored:
    """Where the mirror is."""

    head: str
    commits: int
    files: int
    position: int
    rebuilt: bool


class _ErasedSince(KbError):
    """Something that is in the repository was erased."""


@dataclass
class _Tree:
    """`<project>/<two characters of the id>/<name>.<id>.md`: folders stay small, so that a commit
    does."""

    files: dict[str, tuple[bytes, str, bytes]] = field(default_factory=dict)
    """Document id → folder (project and two characters), file name, git id of the content."""
    folders: dict[bytes, dict[str, bytes]] = field(default_factory=dict)
    """Folder → file name → git id."""
    written: dict[bytes, bytes] = field(default_factory=dict)
    """Folder → git id of its tree, where that is as it was."""

    def put(self, document_id: str, folder: bytes, name: str, content: bytes) -> bool:
        """Show a document; was it shown otherwise before?"""
        if self.files.get(document_id) == (folder, name, content):
            return False
        self.drop(document_id)
        self.files[document_id] = folder, name, content
        self.written.pop(folder, None)
        self.folders.setdefault(folder, {})[name] = content
        return True

    def drop(self, document_id: str) -> bool:
        """Show a document no more; was it shown?"""
        if document_id not in self.files:
            return False
        folder, name, _ = self.files.pop(document_id)
        self.written.pop(folder, None)
        del self.folders[folder][name]
        if not self.folders[folder]:
            del self.folders[folder]
        return True


class Mirror:
    """The repository and what it shows."""

    def __init__(self, root: Path, log: Log, blobs: Blobs, say: Callable[[str], None]) -> None:
        self._root, self._log, self._blobs, self._say = root, log, blobs, say
        self._commits, self._rebuilt = 0, False

    async def keep(self, *, follow: bool = False, rebuild: bool = False) -> Mirrored:
        """Bring the mirror up to the end of the log; with `follow` for ever.

        Raises:
            Refusal: `no-mirror` (the folder holds something else), `mirror-running`,
                `missing-blobs`.
        """
        with _alone(self._root):
            return await self._keep(follow=follow, rebuild=rebuild)

    async def _keep(self, *, follow: bool, rebuild: bool) -> Mirrored:
        _prepare(self._root)
        if rebuild or not (self._root / _MARK).exists():
            await self._anew()
        while True:
            try:
                return await self._go_on(follow=follow)
            except _ErasedSince:
                self._say("something was erased: the mirror is made anew without it")
                await self._anew()

    async def _anew(self) -> None:
        """From the first event, beside the old one, which then goes."""
        draft = self._root.with_name(f".{self._root.name}.new")
        while True:
            shutil.rmtree(draft, ignore_errors=True)
            try:
                keeper = _Keeper(_created(draft), self._log, self._blobs)
                await keeper.run(await self._log.head())
                break
            except _ErasedSince:
                continue
        self._commits += keeper.commits
        self._rebuilt = True
        _replace(self._root, draft)

    async def _go_on(self, *, follow: bool) -> Mirrored:
        from dulwich.repo import Repo

        keeper = _Keeper(Repo(str(self._root)), self._log, self._blobs)
        position = await self._log.head()
        await keeper.run(position)
        if follow:
            self._say(f"up to position {position}; following")
            await keeper.follow(position)
        return Mirrored(
            keeper.head, self._commits + keeper.commits, keeper.files, position, self._rebuilt
        )


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    root.parent.mkdir(parents=True, exist_ok=True)
    with root.with_name(f".{root.name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refusal("mirror-running", f"{root} is being written by another") from None
        yield


def _prepare(root: Path) -> None:
    """Remove what a killed rebuild left: the old repository may hold what was erased."""
    for name in (f".{root.name}.new", f".{root.name}.old"):
        shutil.rmtree(root.with_name(name), ignore_errors=True)
    if root.exists() and any(root.iterdir()) and not (root / _MARK).exists():
        raise Refusal("no-mirror", f"{root} holds something else; name a new folder")


def _created(folder: Path) -> Any:
    from dulwich.repo import Repo

    repo: Any = Repo.init_bare(str(folder), mkdir=True)
    folder.chmod(0o700)
    repo.refs.set_symbolic_ref(b"HEAD", _BRANCH)
    (folder / _MARK).touch()
    return repo


def _replace(root: Path, draft: Path) -> None:
    old = root.with_name(f".{root.name}.old")
    if root.exists():
        root.rename(old)
    draft.rename(root)
    shutil.rmtree(old, ignore_errors=True)


class _Keeper:
    """Folds the log from its first event; commits what is after the newest commit."""

    def __init__(self, repo: Any, log: Log, blobs: Blobs) -> None:
        self._repo, self._log, self._blobs = repo, log, blobs
        self._tree, self._parent, self._begins = _Tree(), b"", 0
        self._ever: set[str] | None = None
        """Versions that a commit is about."""
        self.commits = 0
        self._read_head()

    @property
    def head(self) -> str:
        """The newest commit, empty if there is none."""
        return self._parent.decode()

    @property
    def files(self) -> int:
        """How many documents are shown."""
        return len(self._tree.files)

    async def run(self, until: int) -> None:
        """All events up to a position."""
        self._erased = await erasures(self._log, until)
        self._shelf = Shelf(self._erased)
        after = 0
        while after < until:
            for envelope in await self._log.read(after, PAGE):
                after = envelope.position
                if after <= until:
                    await self._apply(envelope)

    async def follow(self, after: int) -> None:
        """What comes, for ever."""
        async for batch in self._log.follow(after):
            for envelope in batch:
                await self._apply(envelope)

    async def _apply(self, envelope: Envelope) -> None:
        known = envelope.position <= self._begins
        erased = envelope.type == "Erased" and not known
        if erased and self._was_committed(envelope.data["version_id"]):
            raise _ErasedSince("something was erased")
        event = self._shelf.apply(envelope)
        if event is None or envelope.type not in _VERBS or known:
            return
        shown = self._shelf.newest(event.document_id)
        changed = await self._show(event.document_id, shown)
        settles = envelope.type in ("Superseded", "Reinstated") and shown is not None
        if changed or settles:
            self._commit(envelope, event.document_id, shown)

    def _was_committed(self, version_id: str) -> bool:
        """An erased text must be in no commit."""
        if self._ever is None:
            self._ever = set()
            head = self._parent
            while head:
                commit: Any = self._repo[head]
                self._ever.update(
                    line[len(_VERSION) :]
                    for line in commit.message.decode().splitlines()
                    if line.startswith(_VERSION)
                )
                head = commit.parents[0] if commit.parents else b""
        return version_id in self._ever

    async def _show(self, document_id: str, shown: Shown | None) -> bool:
        from dulwich.objects import Blob

        if shown is None:
            return self._tree.drop(document_id)
        try:
            text = await markdown(shown, self._blobs)
        except FileNotFoundError:
            await self._lost(shown)
            raise
        blob = Blob.from_string(text)
        self._repo.object_store.add_object(blob)
        receipt = shown.receipt
        folder = f"{receipt.project}/{document_id[:2]}".encode()
        name = f"{safe_stem(receipt.name)}.{document_id}.md"
        return self._tree.put(document_id, folder, name, blob.id)

    async def _lost(self, shown: Shown) -> None:
        """A text is not in the store: it was erased, which the log says further on, or lost."""
        gone = await erasures(self._log, await self._log.head())
        version_id = shown.receipt.version_id
        if gone.get(version_id, 0) > self._erased.get(version_id, 0):
            raise _ErasedSince("something was erased")
        raise Refusal("missing-blobs", f"the store lacks the text of version {version_id}")

    def _commit(self, envelope: Envelope, document_id: str, shown: Shown | None) -> None:
        from dulwich.objects import Commit

        commit: Any = Commit()
        commit.tree = self._write_tree()
        commit.parents = [self._parent] if self._parent else []
        commit.author = commit.committer = _WHO
        commit.author_time = commit.commit_time = _seconds(envelope.recorded_at)
        commit.author_timezone = commit.commit_timezone = 0
        commit.encoding = b"UTF-8"
        commit.message = _message(envelope, document_id, shown).encode()
        self._repo.object_store.add_object(commit)
        self._repo.refs[_BRANCH] = commit.id
        self._parent = commit.id
        self.commits += 1
        if shown and self._ever is not None:
            self._ever.add(shown.receipt.version_id)

    def _write_tree(self) -> bytes:
        from dulwich.objects import Tree

        projects: dict[bytes, Any] = {}
        for folder, files in self._tree.folders.items():
            project, _, shard = folder.partition(b"/")
            if folder not in self._tree.written:
                tree: Any = Tree()
                for name, content in files.items():
                    tree.add(name.encode(), _FILE, content)
                self._repo.object_store.add_object(tree)
                self._tree.written[folder] = tree.id
            made = projects.setdefault(project, Tree())
            made.add(shard, _FOLDER, self._tree.written[folder])
        root: Any = Tree()
        for project, made in projects.items():
            self._repo.object_store.add_object(made)
            root.add(project, _FOLDER, made.id)
        self._repo.object_store.add_object(root)
        return bytes(root.id)

    def _read_head(self) -> None:
        """What the newest commit shows, and up to where of the log it is."""
        if _BRANCH not in self._repo.refs:
            return
        self._parent = self._repo.refs[_BRANCH]
        commit: Any = self._repo[self._parent]
        lines = commit.message.decode().splitlines()
        self._begins = int(next(x for x in lines if x.startswith(_POSITION))[len(_POSITION) :])
        root: Any = self._repo[commit.tree]
        for project in root.items():
            shards: Any = self._repo[project.sha]
            for shard in shards.items():
                files: Any = self._repo[shard.sha]
                for item in files.items():
                    name = item.path.decode()
                    folder = project.path + b"/" + shard.path
                    self._tree.put(name[:-3].rpartition(".")[2], folder, name, item.sha)


def _message(envelope: Envelope, document_id: str, shown: Shown | None) -> str:
    named = shown.receipt.name if shown else document_id
    lines = [
        f"{_VERBS[envelope.type]} {clean(named, one_line=True)}",
        "",
        f"Project: {envelope.project}",
        f"Document: {document_id}",
    ]
    if shown:
        lines.append(f"{_VERSION}{shown.receipt.version_id}")
        lines.append(f"Valid-From: {shown.window.valid_from.isoformat()}")
    lines += [f"Event: {envelope.type} {envelope.event_id}", f"{_POSITION}{envelope.position}"]
    return "\n".join(lines) + "\n"


def _seconds(moment: datetime) -> int:
    return int(moment.timestamp())
