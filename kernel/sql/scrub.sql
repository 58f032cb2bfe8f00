-- name: lock$
SELECT pg_advisory_lock(:key::bigint);

-- name: position$
-- What is in the log by now: its erasures are in the tables, or will be with the next scrub.
SELECT position FROM log.head;

-- name: transaction$
-- The number that the next transaction gets, as text: xid8 has no type in the driver.
SELECT pg_snapshot_xmax(pg_current_snapshot())::text;

-- name: looking_back$
-- Is there a transaction, or a snapshot, that is older than this one?
SELECT EXISTS (
  SELECT FROM pg_stat_activity
   WHERE pid <> pg_backend_pid() AND datname = current_database()
     AND (age(backend_xmin) > age(((:xid::text)::numeric % 4294967296)::text::xid)
          OR age(backend_xid) > age(((:xid::text)::numeric % 4294967296)::text::xid)));

-- name: tables
-- Tables that hold words of documents and people, the small ones first; then the planner's samples
-- of them. Vectors are words too, to who has the model.
SELECT name, format('VACUUM (FULL, ANALYZE) %s', name) AS statement
  FROM unnest(ARRAY['auth.account', 'auth.session', 'log.failure', 'read.job', 'read.version',
                    'cache.parse', 'log.event', 'cache.embedding', 'read.chunk',
                    'pg_catalog.pg_statistic', 'pg_catalog.pg_statistic_ext_data']) AS t (name)
 WHERE to_regclass(name) IS NOT NULL;

-- name: weight$
-- Bytes that a scrub writes anew.
SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind = 'r' AND n.nspname IN ('auth', 'log', 'read', 'cache');

-- name: checkpoint!
CHECKPOINT;

-- name: switch_wal!
SELECT pg_switch_wal();

-- name: done!
UPDATE log.scrub SET position = greatest(position, :position), at = now();
