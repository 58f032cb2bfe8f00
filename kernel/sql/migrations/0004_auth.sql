-- People who may sign in, and their sessions. Not a projection: nothing rebuilds it.
CREATE SCHEMA auth;

CREATE TABLE auth.account (
  actor_id      uuid PRIMARY KEY DEFAULT gen_random_uuid(),  -- all that the log ever says of a person
  name          text NOT NULL CHECK (name ~ '^[a-z0-9][a-z0-9._@-]{0,63}$'),
  password_hash text NOT NULL,                               -- argon2id, its parameters inside
  role          text NOT NULL CHECK (role IN ('viewer', 'editor', 'admin')),
  must_change   boolean NOT NULL DEFAULT false,              -- a password that somebody else knows
  disabled      boolean NOT NULL DEFAULT false,
  created_at    timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT account_name_once UNIQUE (name)
);

-- The cookie holds a random secret; only its SHA-256 is here, so a copy of the table signs nobody in.
CREATE TABLE auth.session (
  token_hash bytea PRIMARY KEY CHECK (length(token_hash) = 32),
  actor_id   uuid NOT NULL REFERENCES auth.account ON DELETE CASCADE,
  csrf       text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL
);
CREATE INDEX session_of_account ON auth.session (actor_id);  -- sign somebody out everywhere
CREATE INDEX session_expiry ON auth.session (expires_at);    -- drop what is over

-- Failed sign-ins by hashed key (address, or name with address): all replicas count together.
CREATE TABLE auth.attempt (
  key_hash   bytea PRIMARY KEY,
  failures   int NOT NULL,
  last_at    timestamptz NOT NULL
);

REVOKE ALL ON SCHEMA auth FROM PUBLIC;
GRANT USAGE ON SCHEMA auth TO kb_ui;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA auth TO kb_ui;
