-- name: moment^
-- What a snapshot of the log is a snapshot of.
SELECT position, encode(fingerprint, 'hex') AS fingerprint, now() AS at,
       (SELECT count(*) FROM log.event WHERE redacted_at IS NOT NULL) AS redacted,
       (SELECT encode(sha256('citelog installation' || key), 'hex') FROM log.identity) AS installation
  FROM log.head;

-- name: tables
-- Every table that is no projection and no cache, with the columns that are stored: what a database
-- holds besides is made from them. Rights are those of the code; of people's sessions, counted
-- sign-ins and counted failures nothing is kept.
SELECT n.nspname AS schema, c.relname AS name,
       array_agg(a.attname::text ORDER BY a.attnum) AS columns
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
                     AND NOT a.attisdropped AND a.attgenerated = ''
 WHERE c.relkind = 'r' AND n.nspname !~ '^pg_'
   AND n.nspname NOT IN ('information_schema', 'public', 'read', 'cache')
   AND (n.nspname, c.relname) NOT IN (('log', 'writer'), ('log', 'projection'), ('log', 'failure'),
                                      ('auth', 'session'), ('auth', 'attempt'))
 GROUP BY 1, 2 ORDER BY 1, 2;

-- name: migrations
SELECT name, sha256 FROM public.migration ORDER BY name;

-- name: about_versions
-- What happened to versions, in order.
SELECT position, type, schema_version, data FROM log.event
 WHERE position > :after AND data ? 'version_id' ORDER BY position LIMIT :limit;

-- name: tombstones
-- All erasures.
SELECT * FROM log.event WHERE type = 'Erased' ORDER BY position;

-- name: is_empty$
-- Is there nothing of citelog in this database?
SELECT to_regnamespace('log') IS NULL AND to_regclass('public.migration') IS NULL;

-- name: clear_statement$
-- What a migration put into a table makes way for what a backup has.
SELECT format('DELETE FROM %I.%I', :schema::text, :name::text);

-- name: receipts_of
-- Which of these versions are in the log?
SELECT DISTINCT data ->> 'version_id' AS version_id FROM log.event
 WHERE type = 'DocumentReceived' AND data ->> 'version_id' = ANY(:version_ids::text[]);

-- name: forget_people!
-- People who were erased after the backup was made.
DELETE FROM auth.account WHERE actor_id::text = ANY(:actor_ids::text[]);

-- name: has_accounts$
SELECT EXISTS (SELECT FROM auth.account);

-- name: moment_of_head$
SELECT position FROM log.head;

-- name: append^
-- Append events to one stream through the only door.
SELECT status, last_version, last_position FROM log.append(:stream_id, :expected, :events);

-- name: projects
-- Projects that have something to be indexed.
SELECT DISTINCT project FROM log.event WHERE type = 'Indexed' ORDER BY project;

-- name: count_redacted$
-- Events up to a position that an erasure took the words from.
SELECT count(*) FROM log.event WHERE redacted_at IS NOT NULL AND position <= :position;

-- name: redacted_statement$
-- Those events as COPY writes them, for another dump of the same columns.
SELECT format('SELECT %s FROM log.event WHERE redacted_at IS NOT NULL AND position <= %s',
              (SELECT string_agg(quote_ident(c), ', ' ORDER BY n)
                 FROM unnest(:columns::text[]) WITH ORDINALITY u(c, n)), :position::bigint);
