-- name: append^
-- The door of the log.
SELECT status, last_version, last_position FROM log.append(:stream_id, -1, :events);

-- name: grow!
-- Events of versions of eight events each, linked as the migration links those of a log before it.
INSERT INTO log.event
SELECT (l.e).position, (l.e).stream_id, (l.e).version, (l.e).event_id, (l.e).type,
       (l.e).schema_version, (l.e).lane, (l.e).project, NULL, (l.e).correlation_id, (l.e).actor, NULL,
       (l.e).occurred_at, (l.e).recorded_at, (l.e).data, (l.e).salt, l.digest, l.chain, NULL
  FROM (
    SELECT e, digest, log.linked(digest || log.header(e))
                        OVER (PARTITION BY (e).stream_id ORDER BY (e).version) AS chain
      FROM (
        SELECT e, log.digest((e).salt, (e).data) AS digest
          FROM (
            SELECT ROW(n, 'version-' || (n - 1) / 8, (n - 1) % 8 + 1, gen_random_uuid(), 'Parsed', 1, 'live',
                       'default', NULL, gen_random_uuid(), 'svc:bench', NULL, now(), now(),
                       jsonb_build_object('version_id', (n - 1) / 8, 'parsed_sha256', repeat('a', 64),
                                          'parser', 'bench', 'language', 'en'),
                       uuid_send(gen_random_uuid()), NULL, NULL, NULL)::log.event AS e
              FROM generate_series(:first::bigint, :last::bigint) AS n
            OFFSET 0
          ) made
      ) digested
  ) l;

-- name: seal!
-- The head over all events.
UPDATE log.head SET position = (SELECT max(position) FROM log.event), recorded_at = now(),
  fingerprint = (SELECT log.linked(chain ORDER BY position) FROM log.event);
