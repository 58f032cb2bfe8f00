-- name: lock$
SELECT pg_advisory_lock(:key);

-- name: unlock$
SELECT pg_advisory_unlock(:key);

-- name: create_table!
CREATE TABLE IF NOT EXISTS public.migration (
  name text PRIMARY KEY, sha256 text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now());

-- name: applied
SELECT name, sha256 FROM public.migration;

-- name: record!
INSERT INTO public.migration (name, sha256) VALUES (:name, :sha256);

-- name: session_role$
SELECT session_user::text;

-- name: replace_writers!
-- Rights are exactly the given pairs.
WITH wanted AS (SELECT DISTINCT r, t FROM unnest(:roles::text[], :types::text[]) AS u(r, t)),
     gone AS (DELETE FROM log.writer w
               WHERE NOT EXISTS (SELECT FROM wanted WHERE r = w.role AND t = w.type))
INSERT INTO log.writer SELECT r, t FROM wanted ON CONFLICT DO NOTHING;

-- name: password_statement$
-- ALTER ROLE takes no parameters, so the server quotes them.
SELECT format('ALTER ROLE %I PASSWORD %L', :role::text, :password::text);

-- name: closing_statement$
-- Rights on a database are not copied with it, so they are set with every run.
SELECT format('REVOKE ALL ON DATABASE %I FROM PUBLIC; GRANT CONNECT ON DATABASE %I TO %s',
              current_database(), current_database(),
              (SELECT string_agg(quote_ident(r), ', ') FROM unnest(:roles::text[]) r));

-- name: give_way!
-- Shorter than Postgres takes to look for a deadlock (1 s): it is the migration that gives way.
SET LOCAL lock_timeout = '800ms';
