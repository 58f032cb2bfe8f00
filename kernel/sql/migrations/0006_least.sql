-- What Postgres gives everybody is taken back, and a service writes its own failures only.

-- The schema public, and functions, those of later migrations too. (The right to temporary tables is
-- one on the database: kernel.migrations takes it.)
REVOKE ALL ON SCHEMA public FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA log FROM PUBLIC;
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;

-- The rest of PUBLIC is the superuser's to take: for any other owner these lines only warn.
-- Large objects: bytes that no erasure would find.
REVOKE EXECUTE ON FUNCTION lo_creat(int), lo_create(oid), lo_from_bytea(oid, bytea),
  lo_open(oid, int), lo_put(oid, bigint, bytea), lo_unlink(oid), lowrite(int, bytea),
  lo_truncate(int, int), lo_truncate64(int, bigint) FROM PUBLIC;
-- Locks by number: whoever holds that of log.append stops every service. The indexer's have two
-- numbers, which is another space.
REVOKE EXECUTE ON FUNCTION
  pg_advisory_lock(bigint), pg_advisory_lock_shared(bigint),
  pg_advisory_xact_lock(bigint), pg_advisory_xact_lock_shared(bigint),
  pg_try_advisory_lock(bigint), pg_try_advisory_lock_shared(bigint),
  pg_try_advisory_xact_lock(bigint), pg_try_advisory_xact_lock_shared(bigint),
  pg_advisory_lock(int, int), pg_advisory_lock_shared(int, int),
  pg_advisory_xact_lock(int, int), pg_advisory_xact_lock_shared(int, int),
  pg_try_advisory_lock(int, int), pg_try_advisory_lock_shared(int, int),
  pg_try_advisory_xact_lock(int, int), pg_try_advisory_xact_lock_shared(int, int)
  FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pg_advisory_xact_lock(int, int), pg_advisory_xact_lock_shared(int, int),
  pg_try_advisory_lock(int, int) TO kb_indexer;

-- A consumer's name begins with its service's. The owner of the table is not bound by this.
ALTER TABLE log.failure ENABLE ROW LEVEL SECURITY;
CREATE POLICY failure_read ON log.failure FOR SELECT USING (true);
CREATE POLICY failure_insert ON log.failure FOR INSERT
  WITH CHECK (starts_with(consumer, substr(current_user, 4) || '-'));
CREATE POLICY failure_update ON log.failure FOR UPDATE
  USING (starts_with(consumer, substr(current_user, 4) || '-'))
  WITH CHECK (starts_with(consumer, substr(current_user, 4) || '-'));
