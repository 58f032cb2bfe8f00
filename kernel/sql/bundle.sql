-- name: moment^
SELECT position, encode(fingerprint, 'hex') AS fingerprint, now() AS at,
       (SELECT encode(sha256('citelog installation' || key), 'hex') FROM log.identity) AS installation
  FROM log.head;

-- name: slice
-- Events of a project, whole: the columns as their links are made of them, the data as text.
SELECT position, stream_id, version, event_id::text, type, schema_version, lane, project,
       causation_id::text, correlation_id::text, actor, traceparent,
       (extract(epoch FROM occurred_at) * 1000000)::bigint AS occurred,
       (extract(epoch FROM recorded_at) * 1000000)::bigint AS recorded,
       data::text AS data, encode(salt, 'hex') AS salt, encode(digest, 'hex') AS digest,
       encode(chain, 'hex') AS chain
  FROM log.event
 WHERE project = :project AND position > :after ORDER BY position LIMIT :limit;

-- name: erased_since
-- Versions of a project that were erased after a position.
SELECT data ->> 'version_id' AS version_id FROM log.event
 WHERE project = :project AND type = 'Erased' AND position > :after;

-- name: known
-- Which of these events are in the log?
SELECT event_id::text, stream_id, version FROM log.event WHERE event_id = ANY(:event_ids::uuid[]);

-- name: ends
-- The newest version of each of these streams.
SELECT DISTINCT ON (stream_id) stream_id, version FROM log.event
 WHERE stream_id = ANY(:stream_ids::text[]) ORDER BY stream_id, version DESC;

-- name: is_used$
-- Is there anything in a project?
SELECT EXISTS (SELECT FROM log.event WHERE project = :project);

-- name: append_in_order
-- Append to several streams, one after the other, in the order given; all or nothing.
SELECT a.status, a.last_position
  FROM ROWS FROM (unnest(:stream_ids::text[]), unnest(:expected::int[]), unnest(:events::text[]))
    AS t(stream_id, expected, events),
  LATERAL log.append(t.stream_id, t.expected, t.events::jsonb) a;
