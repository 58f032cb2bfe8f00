-- name: fill!
-- Lives of versions as the line writes them, after position :after, :stories of them, with links as
-- `log.append` makes them. `lives`: one event of a life a row: type, category, its place in its
-- stream, its schema version, and its data, in which D, V and S stand for the ids. All but the
-- fingerprint of log.head, which `seal` makes.
INSERT INTO log.event
SELECT position, stream_id, version, event_id, type, schema_version, lane, project, causation_id,
       correlation_id, actor, traceparent, occurred_at, recorded_at, data, salt, digest,
       log.linked(digest || header) OVER (PARTITION BY stream_id ORDER BY version), NULL
  FROM (
    SELECT *, log.digest(salt, data) AS digest, log.header(
             ROW(position, stream_id, version, event_id, type, schema_version, lane, project,
                 causation_id, correlation_id, actor, traceparent, occurred_at, recorded_at, data,
                 salt, NULL, NULL, NULL)::log.event) AS header
      FROM (
        SELECT :after::bigint + (story - 1) * :length::int + ordinal AS position,
               category || '-' || CASE category WHEN 'document' THEN d ELSE v END AS stream_id,
               place AS version, gen_random_uuid() AS event_id, type,
               schema_version::smallint AS schema_version, 'live' AS lane, 'default' AS project,
               NULL::uuid AS causation_id, job AS correlation_id, 'svc:bench' AS actor,
               NULL::text AS traceparent, now() AS occurred_at, now() AS recorded_at,
               replace(replace(replace(said, '<D>', d), '<V>', v), '<S>', s)::jsonb AS data,
               uuid_send(gen_random_uuid()) AS salt
          FROM (
            SELECT n AS story, md5('d' || n + :after) AS d, md5('v' || n + :after) AS v,
                   md5('s' || n + :after) || md5('t' || n + :after) AS s,
                   md5('j' || n + :after)::uuid AS job
              FROM generate_series(1, :stories::bigint) n) stories
          CROSS JOIN unnest(:types::text[], :categories::text[], :places::int[], :schemas::int[],
                            :said::text[]) WITH ORDINALITY
            AS life (type, category, place, schema_version, said, ordinal)) made) linked
 ORDER BY position;

-- name: advance!
UPDATE log.head SET position = (SELECT max(position) FROM log.event), recorded_at = now();

-- name: seal!
-- The fingerprint of the whole log.
UPDATE log.head SET fingerprint = (SELECT log.linked(chain ORDER BY position) FROM log.event);

-- name: create_beside!
CREATE DATABASE beside;
