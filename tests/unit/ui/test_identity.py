"""Accounts and sessions on a real Postgres."""

import asyncio
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
from argon2 import PasswordHasher

from kernel.errors import Refusal
from services.ui.identity import ALLOWED_PER_NAME, Accounts, Person, utcnow
from tests.unit.ui.conftest import CHEAP, CHOSEN, PASSWORD


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = utcnow()

    def __call__(self) -> Any:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def people(pool: "asyncpg.Pool[Any]", clock: Clock) -> Accounts:
    made = Accounts(pool, now=clock, hasher=CHEAP)
    await made.bootstrap(PASSWORD)
    return made


async def enter(people: Accounts, password: str = PASSWORD, address: str = "1.2.3.4") -> str:
    return await people.sign_in("admin", password, address, None)


async def refusal(
    people: Accounts, password: str, address: str = "1.2.3.4", name: str = "admin"
) -> str:
    with pytest.raises(Refusal) as caught:
        await people.sign_in(name, password, address, None)
    return caught.value.code


async def someone(people: Accounts, token: str) -> Person:
    person = await people.person(token)
    assert person
    return person


async def test_the_first_account_is_an_admin_with_a_password_to_change(people: Accounts) -> None:
    person = await someone(people, await enter(people))

    assert (person.name, person.role, person.must_change) == ("admin", "admin", True)
    assert person.actor == f"actor:{person.actor_id}"


async def test_bootstrap_changes_nothing_when_there_is_an_account(people: Accounts) -> None:
    assert not await people.bootstrap("another password")
    assert await refusal(people, "another password") == "bad-credentials"


async def test_many_bootstraps_at_once_make_one_account(pool: "asyncpg.Pool[Any]") -> None:
    made = await asyncio.gather(
        *(Accounts(pool, hasher=CHEAP).bootstrap(PASSWORD) for _ in range(8))
    )

    assert made.count(True) == 1
    assert await pool.fetchval("SELECT count(*) FROM auth.account") == 1


async def test_passwords_are_argon2id_and_secrets_are_not_stored(
    people: Accounts, pool: "asyncpg.Pool[Any]"
) -> None:
    token = await enter(people)
    dump = str(
        await pool.fetch("SELECT a.*, s.* FROM auth.account a JOIN auth.session s USING (actor_id)")
    )

    assert "$argon2id$" in dump
    assert PASSWORD not in dump and token not in dump
    assert PasswordHasher().type.name == "ID"


@pytest.mark.parametrize(
    "password", ["", "wrong", PASSWORD + "x", "x" * 5000, "\ud800", PASSWORD.upper()]
)
async def test_a_wrong_password_is_refused(people: Accounts, password: str) -> None:
    assert await refusal(people, password) == "bad-credentials"


async def test_an_unknown_name_gets_the_same_answer(people: Accounts) -> None:
    for name in ("nobody", "", "x" * 10_000, "ad\0min", "\ud800"):
        assert await refusal(people, PASSWORD, name=name) == "bad-credentials"


async def test_a_session_ends_after_its_hours(people: Accounts, clock: Clock) -> None:
    token = await enter(people)
    clock.now += timedelta(hours=11, minutes=59)
    assert await people.person(token)
    clock.now += timedelta(minutes=2)
    assert await people.person(token) is None


async def test_signing_in_closes_the_session_that_the_browser_had(people: Accounts) -> None:
    old = await enter(people)
    new = await people.sign_in("admin", PASSWORD, "1.2.3.4", old)

    assert old != new
    assert await people.person(old) is None
    assert await people.person(new)


async def test_signing_out_closes_this_session_only(people: Accounts) -> None:
    here, elsewhere = await enter(people), await enter(people)
    await people.sign_out(here)

    assert await people.person(here) is None
    assert await people.person(elsewhere)


async def test_a_disabled_account_is_out_at_once(
    people: Accounts, pool: "asyncpg.Pool[Any]"
) -> None:
    token = await enter(people)
    await pool.execute("UPDATE auth.account SET disabled = true")

    assert await people.person(token) is None
    assert await refusal(people, PASSWORD) == "bad-credentials"


async def test_a_new_password_closes_every_session(people: Accounts) -> None:
    tokens = [await enter(people), await enter(people)]
    fresh = await people.change_password(await someone(people, tokens[0]), PASSWORD, CHOSEN)

    assert [await people.person(t) for t in tokens] == [None, None]
    assert not (await someone(people, fresh)).must_change
    assert await refusal(people, PASSWORD) == "bad-credentials"
    assert await enter(people, CHOSEN)


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("wrong", CHOSEN, "wrong-password"),
        (PASSWORD, "short", "weak-password"),
        (PASSWORD, "a" * 40, "weak-password"),
        (PASSWORD, "x" * 5000, "weak-password"),
        (PASSWORD, PASSWORD, "same-password"),
    ],
)
async def test_a_password_is_not_changed_for_the_worse(
    people: Accounts, old: str, new: str, code: str
) -> None:
    token = await enter(people)
    with pytest.raises(Refusal) as caught:
        await people.change_password(await someone(people, token), old, new)
    assert caught.value.code == code
    assert await people.person(token)


async def test_guessing_is_slowed_down_and_the_right_one_waits_too(
    people: Accounts, clock: Clock
) -> None:
    for _ in range(ALLOWED_PER_NAME):
        assert await refusal(people, "guess") == "bad-credentials"
    assert await refusal(people, "guess") == "too-many-attempts"
    assert await refusal(people, PASSWORD) == "too-many-attempts"
    clock.now += timedelta(seconds=3)
    assert await enter(people)


async def test_each_further_guess_costs_twice_the_wait(people: Accounts, clock: Clock) -> None:
    for _ in range(ALLOWED_PER_NAME + 3):
        clock.now += timedelta(seconds=16)
        await refusal(people, "guess")
    clock.now += timedelta(seconds=15)
    assert await refusal(people, "guess") == "too-many-attempts"
    clock.now += timedelta(seconds=2)
    assert await refusal(people, "guess") == "bad-credentials"


async def test_many_guesses_at_once_do_not_get_past_the_limit(people: Accounts) -> None:
    codes = await asyncio.gather(*(refusal(people, f"guess {n}") for n in range(30)))

    assert codes.count("bad-credentials") == ALLOWED_PER_NAME


async def test_guessing_elsewhere_does_not_lock_the_owner_out(people: Accounts) -> None:
    for _ in range(ALLOWED_PER_NAME + 1):
        await refusal(people, "guess", address="6.6.6.6")

    assert await enter(people, address="1.2.3.4")


async def test_failures_are_forgotten_after_an_hour(people: Accounts, clock: Clock) -> None:
    for _ in range(ALLOWED_PER_NAME):
        await refusal(people, "guess")
    clock.now += timedelta(hours=2)
    assert await refusal(people, "guess") == "bad-credentials"
    assert await refusal(people, "guess") == "bad-credentials"


async def test_a_hash_with_old_parameters_is_renewed_at_sign_in(
    people: Accounts, pool: "asyncpg.Pool[Any]"
) -> None:
    before = await pool.fetchval("SELECT password_hash FROM auth.account")
    stronger = Accounts(pool, hasher=PasswordHasher(time_cost=2, memory_cost=16, parallelism=1))
    await stronger.sign_in("admin", PASSWORD, "1.2.3.4", None)

    assert await pool.fetchval("SELECT password_hash FROM auth.account") != before
    assert await stronger.sign_in("admin", PASSWORD, "1.2.3.4", None)


async def test_the_role_of_the_service_can_do_all_of_this_and_nothing_else(
    ui_database: str, people: Accounts
) -> None:
    role = {"role": "kb_ui"}
    async with asyncpg.create_pool(
        ui_database, min_size=1, max_size=1, server_settings=role
    ) as own:
        restricted = Accounts(own, hasher=CHEAP)
        token = await restricted.sign_in("admin", PASSWORD, "1.2.3.4", None)
        person = await someone(restricted, token)
        await restricted.sign_out(await restricted.change_password(person, PASSWORD, CHOSEN))
        for forbidden in ("DELETE FROM log.event", "DROP TABLE auth.account"):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await own.execute(forbidden)


async def add(people: Accounts, name: str, role: str = "editor") -> str:
    """Another account; how the log calls it."""
    id_ = await people._pool.fetchval(
        "INSERT INTO auth.account (name, password_hash, role) VALUES ($1, $2, $3) "
        "RETURNING actor_id",
        name, CHEAP.hash(CHOSEN), role,
    )  # fmt: skip
    return f"actor:{id_}"


async def test_an_erased_person_is_signed_out_and_can_sign_in_no_more(people: Accounts) -> None:
    actor = await add(people, "alice")
    token = await people.sign_in("alice", CHOSEN, "1.2.3.4", None)
    done = await people.erase("Alice ")
    assert (done.actor, done.changed, done.sessions) == (actor, True, 1)
    assert await people.person(token) is None
    assert await refusal(people, CHOSEN, name="alice") == "bad-credentials"


async def test_erasing_a_person_twice_is_fine_by_the_id_in_the_log(people: Accounts) -> None:
    actor = await add(people, "alice")
    assert (await people.erase(actor)).changed
    again = await people.erase(actor)
    assert (again.actor, again.changed, again.sessions) == (actor, False, 0)


@pytest.mark.parametrize("who", ["nobody", "actor:", "actor:x", "svc:scanner", "x actor:1", "Ж"])
async def test_whom_nobody_knows_is_not_erased(people: Accounts, who: str) -> None:
    with pytest.raises(Refusal) as caught:
        await people.erase(who)
    assert (caught.value.code, caught.value.status) == ("unknown-person", 404)


async def test_the_last_administrator_stays(people: Accounts) -> None:
    await add(people, "alice")
    with pytest.raises(Refusal, match="last-admin"):
        await people.erase("admin")
    await add(people, "boss", "admin")
    assert (await people.erase("admin")).changed
    with pytest.raises(Refusal, match="last-admin"):
        await people.erase("boss")


async def test_a_disabled_administrator_does_not_count_and_may_go(people: Accounts) -> None:
    await add(people, "boss", "admin")
    await people._pool.execute("UPDATE auth.account SET disabled = true WHERE name = 'boss'")
    with pytest.raises(Refusal, match="last-admin"):
        await people.erase("admin")
    assert (await people.erase("boss")).changed


async def test_of_administrators_who_erase_each_other_one_stays(people: Accounts) -> None:
    await add(people, "boss", "admin")
    done = await asyncio.gather(people.erase("admin"), people.erase("boss"), return_exceptions=True)
    assert sum(isinstance(d, Refusal) for d in done) == 1
    assert await people._pool.fetchval("SELECT count(*) FROM auth.account") == 1


async def test_who_was_erased_is_called_deleted_user(people: Accounts) -> None:
    alice, bob = await add(people, "alice"), await add(people, "bob")
    await people.erase("alice")
    called = await people.names([alice, bob, "svc:scanner", "api", "actor:not-one", alice])
    assert called == {alice: "deleted-user", bob: "bob"}
    assert await people.names([]) == {}
