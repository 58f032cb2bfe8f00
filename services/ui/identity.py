"""Local accounts and their sessions: who is it that holds this cookie."""

import asyncio
import hashlib
import re
import secrets
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from contracts.erasure import DELETED_USER, PersonErased
from kernel.backup import forget
from kernel.db import queries
from kernel.errors import Refusal, Retry

_NAME = re.compile(r"[a-z0-9][a-z0-9._@-]{0,63}\Z")
BOOTSTRAP_NAME = "admin"
PASSWORD_MIN, PASSWORD_MAX = 12, 1024
ALLOWED_PER_NAME, ALLOWED_PER_ADDRESS = 5, 50
"""Failures in an hour before one must wait: 2 s, then twice as long each time, at most 15 min."""


@dataclass(frozen=True)
class Person:
    """A signed-in person. `csrf` belongs to this session."""

    actor_id: UUID
    name: str
    role: str
    must_change: bool
    csrf: str

    @property
    def actor(self) -> str:
        """The opaque id under which this person appears in the log."""
        return f"actor:{self.actor_id}"


def utcnow() -> datetime:
    """Now, with zone."""
    return datetime.now(UTC)


def _sha256(value: str) -> bytes:
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).digest()


class Accounts:
    """Accounts and sessions in the schema `auth`."""

    def __init__(
        self,
        pool: "asyncpg.Pool[Any]",
        *,
        session_hours: float = 12,
        now: Callable[[], datetime] = utcnow,
        hasher: PasswordHasher | None = None,
        backups: Path | None = None,
    ) -> None:
        self._pool, self._now, self._backups = pool, now, backups
        self._lifetime = timedelta(hours=session_hours)
        self._hasher = hasher or PasswordHasher()
        self._q = queries("services.ui.sql", "queries")
        # 64 MiB a hash: a flood of sign-ins must not become a flood of memory.
        self._hashing = asyncio.Semaphore(2)
        self._nobody: str | None = None

    async def bootstrap(self, password: str) -> bool:
        """Make the account `admin` when there is no account at all; True if it was made.

        The password has been seen by whoever started the service, so it must be changed at the
        first sign-in.
        """
        hashed = await self._hash(password)
        made = await self._q.create_first_account(
            self._pool, name=BOOTSTRAP_NAME, password_hash=hashed
        )
        return made is not None

    async def sign_in(self, name: str, password: str, address: str, old_token: str | None) -> str:
        """Check name and password and open a session; returns the secret for the cookie.

        A session that the browser already had is closed (no fixation).

        Raises:
            Refusal: `bad-credentials` (401) or `too-many-attempts` (429).
        """
        name = name.strip().lower()[:256]
        keys = (
            (_sha256(f"{name}\0{address}"), ALLOWED_PER_NAME),
            (_sha256(address), ALLOWED_PER_ADDRESS),
        )
        for key, allowed in keys:
            if not await self._q.count_attempt(
                self._pool, key_hash=key, allowed=allowed, now=self._now()
            ):
                raise Refusal("too-many-attempts", "too many failed sign-ins", status=429)
        known = _NAME.match(name)  # anything else is nobody's name, and may not be text at all
        account: Any = await self._q.account_by_name(self._pool, name=name) if known else None
        if not await self._matches(account, password) or account["disabled"]:
            raise Refusal("bad-credentials", "name or password is wrong", status=401)
        await self._q.forget_attempts(self._pool, key_hash=keys[0][0])
        await self._q.forgive_attempt(self._pool, key_hash=keys[1][0])
        await self._sweep()
        if old_token:
            await self.sign_out(old_token)
        return await self._open(self._pool, account["actor_id"])

    async def person(self, token: str) -> Person | None:
        """Who holds this secret, or None: unknown, over, signed out or disabled."""
        row = await self._q.session_of(self._pool, token_hash=_sha256(token), now=self._now())
        return Person(**row) if row else None

    async def sign_out(self, token: str) -> None:
        """Close this session."""
        await self._q.delete_session(self._pool, token_hash=_sha256(token))

    async def change_password(self, person: Person, old: str, new: str) -> str:
        """Set a new password, close every session of the person, and open a new one.

        Raises:
            Refusal: `wrong-password`, `weak-password` or `same-password` (422).
        """
        account = await self._q.account_by_id(self._pool, actor_id=person.actor_id)
        if not await self._matches(account, old):
            raise Refusal("wrong-password", "the present password is wrong")
        if not PASSWORD_MIN <= len(new) <= PASSWORD_MAX or len(set(new)) < 5:
            raise Refusal("weak-password", f"at least {PASSWORD_MIN} characters, not all alike")
        if secrets.compare_digest(_sha256(old), _sha256(new)):
            raise Refusal("same-password", "the new password must differ")
        hashed = await self._hash(new)
        async with self._pool.acquire() as connection, connection.transaction():
            await self._q.set_password(connection, actor_id=person.actor_id, password_hash=hashed)
            await self._q.delete_sessions_of(connection, actor_id=person.actor_id)
            return await self._open(connection, person.actor_id)

    async def erase(self, who: str) -> PersonErased:
        """Delete the account of a person (a name, or `actor:…`) with all sessions: at once nobody
        is signed in with it, and nobody learns any more whose the opaque id in the log was.

        Raises:
            Refusal: `unknown-person` (404), or `last-admin` (409): nobody could do anything more.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            # Locked in one order: of two administrators who erase each other one is refused.
            admins = {r["actor_id"] async for r in self._q.lock_admins(connection)}
            actor_id = await self._actor_id(connection, who)
            if admins == {actor_id}:
                raise Refusal("last-admin", "the last administrator stays", status=409)
            sessions = await self._q.count_sessions(connection, actor_id=actor_id)
            gone = await self._q.delete_account(connection, actor_id=actor_id)
        await self._forget_in_backups(actor_id)
        return PersonErased(
            actor=f"actor:{actor_id}", changed=gone is not None, sessions=int(sessions)
        )

    async def _forget_in_backups(self, actor_id: UUID) -> None:
        """An older backup must not bring the account back.

        Raises:
            Retry: their folder is away; asked again by the id, the rest is done.
        """
        if self._backups is None:
            return
        try:
            await forget(self._backups, people=[str(actor_id)])
        except OSError as error:
            raise Retry(f"backups: {error.strerror}", after=60) from error

    async def _actor_id(self, connection: Any, who: str) -> UUID:
        """Of an account, or of one that is gone: the id in the log says so."""
        kind, found, id_ = who.strip().lower().rpartition("actor:")
        if found and not kind:
            with suppress(ValueError):
                return UUID(id_)
        known = _NAME.match(who.strip().lower())
        row = await self._q.account_by_name(connection, name=known[0]) if known else None
        if row is None:
            raise Refusal("unknown-person", "there is no such account", status=404)
        return UUID(str(row["actor_id"]))

    async def names(self, actors: Iterable[str]) -> dict[str, str]:
        """What people are called, by what the log says of them; who was erased is `deleted-user`.

        What is no person (a service, a program with the key) is not in it.
        """
        ids: dict[UUID, str] = {}
        for actor in actors:
            if actor.startswith("actor:"):
                with suppress(ValueError):
                    ids[UUID(actor.removeprefix("actor:"))] = actor
        rows = self._q.account_names(self._pool, actor_ids=list(ids))
        known = {r["actor_id"]: str(r["name"]) async for r in rows}
        return {actor: known.get(id_, DELETED_USER) for id_, actor in ids.items()}

    async def _open(self, connection: Any, actor_id: UUID) -> str:
        token, now = secrets.token_urlsafe(32), self._now()
        await self._q.create_session(
            connection,
            token_hash=_sha256(token),
            actor_id=actor_id,
            csrf=secrets.token_urlsafe(32),
            now=now,
            expires_at=now + self._lifetime,
        )
        return token

    async def _sweep(self) -> None:
        await self._q.delete_expired(self._pool, now=self._now())
        await self._q.delete_old_attempts(self._pool, now=self._now())

    async def _hash(self, password: str) -> str:
        async with self._hashing:
            return await asyncio.to_thread(self._hasher.hash, password.encode())

    async def _matches(self, account: Any, password: str) -> bool:
        """Whether it is the password; an unknown name costs the same time as a known one."""
        secret = password.encode("utf-8", "surrogatepass")
        if len(secret) > 4 * PASSWORD_MAX:
            return False
        if account is None:
            self._nobody = self._nobody or await self._hash(secrets.token_urlsafe(16))
        hashed = account["password_hash"] if account else str(self._nobody)
        async with self._hashing:
            right = await asyncio.to_thread(self._verify, hashed, secret)
        if right and account and self._hasher.check_needs_rehash(hashed):
            await self._q.rehash(
                self._pool,
                actor_id=account["actor_id"],
                old_hash=hashed,
                new_hash=await self._hash(password),
            )
        return right and account is not None

    def _verify(self, hashed: str, secret: bytes) -> bool:
        try:
            return self._hasher.verify(hashed, secret)
        except (VerificationError, InvalidHashError):
            return False
