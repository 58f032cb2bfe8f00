-- name: create_first_account<!
-- The bootstrap account, only while there is none; two replicas that start at once make one.
INSERT INTO auth.account (name, password_hash, role, must_change)
SELECT :name, :password_hash, 'admin', true
 WHERE NOT EXISTS (SELECT FROM auth.account)
    ON CONFLICT (name) DO NOTHING
RETURNING actor_id;

-- name: account_by_name^
SELECT actor_id, name, password_hash, role, must_change, disabled
  FROM auth.account WHERE name = :name;

-- name: account_by_id^
SELECT actor_id, name, password_hash, role, must_change, disabled
  FROM auth.account WHERE actor_id = :actor_id;

-- name: set_password!
UPDATE auth.account SET password_hash = :password_hash, must_change = false
 WHERE actor_id = :actor_id;

-- name: rehash!
-- The same password under newer argon2 parameters, unless it was changed meanwhile.
UPDATE auth.account SET password_hash = :new_hash
 WHERE actor_id = :actor_id AND password_hash = :old_hash;

-- name: create_session!
INSERT INTO auth.session (token_hash, actor_id, csrf, created_at, expires_at)
VALUES (:token_hash, :actor_id, :csrf, :now, :expires_at);

-- name: session_of^
-- Who holds this secret now: neither over nor of a disabled account.
SELECT a.actor_id, a.name, a.role, a.must_change, s.csrf
  FROM auth.session s JOIN auth.account a USING (actor_id)
 WHERE s.token_hash = :token_hash AND s.expires_at > :now AND NOT a.disabled;

-- name: delete_session!
DELETE FROM auth.session WHERE token_hash = :token_hash;

-- name: delete_sessions_of!
DELETE FROM auth.session WHERE actor_id = :actor_id;

-- name: delete_expired!
DELETE FROM auth.session WHERE expires_at <= :now;

-- name: count_attempt$
-- One more attempt under this key; NULL when it has to wait. It is counted before the password is
-- looked at, so that many attempts at once do not get past the limit.
INSERT INTO auth.attempt AS a (key_hash, failures, last_at)
VALUES (:key_hash, 1, :now)
    ON CONFLICT (key_hash) DO UPDATE
   SET failures = CASE WHEN a.last_at < cast(:now AS timestamptz) - interval '1 hour' THEN 1 ELSE a.failures + 1 END,
       last_at = :now
 WHERE a.failures < :allowed
    OR a.last_at + interval '1 second' * least(900, power(2, least(a.failures - :allowed + 1, 10)))
       <= :now
RETURNING a.failures;

-- name: forgive_attempt!
-- A right password takes its own attempt back.
UPDATE auth.attempt SET failures = greatest(failures - 1, 0) WHERE key_hash = :key_hash;

-- name: forget_attempts!
DELETE FROM auth.attempt WHERE key_hash = :key_hash;

-- name: delete_old_attempts!
DELETE FROM auth.attempt WHERE last_at < cast(:now AS timestamptz) - interval '1 hour';

-- name: lock_admins
-- Who may administer; nobody of them goes while the caller decides.
SELECT actor_id FROM auth.account WHERE role = 'admin' AND NOT disabled ORDER BY actor_id FOR UPDATE;

-- name: count_sessions$
SELECT count(*) FROM auth.session WHERE actor_id = :actor_id;

-- name: delete_account$
-- With its sessions: they refer to it.
DELETE FROM auth.account WHERE actor_id = :actor_id RETURNING actor_id;

-- name: account_names
SELECT actor_id, name FROM auth.account WHERE actor_id = ANY(:actor_ids::uuid[]);
