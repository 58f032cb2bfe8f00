-- name: head^
-- Where the log ends, by its head and by its rows.
SELECT h.position, h.fingerprint, o.first, o.last
  FROM (SELECT min(position) AS first, max(position) AS last FROM log.event) o
  LEFT JOIN log.head h ON true;

-- name: links
-- Events of a range with what their links are made of; `before`: the link of the stream's event
-- before, by a look-up for each, since no plan of a join may depend on how large the log is.
-- Times that are none (infinity) become NULL: no append records one.
SELECT e.position, e.stream_id, e.version, e.event_id::text, e.type, e.schema_version, e.lane,
       e.project, e.causation_id::text, e.correlation_id::text, e.actor, e.traceparent,
       CASE WHEN isfinite(e.occurred_at)
            THEN (extract(epoch FROM e.occurred_at) * 1000000)::bigint END AS occurred,
       CASE WHEN isfinite(e.recorded_at)
            THEN (extract(epoch FROM e.recorded_at) * 1000000)::bigint END AS recorded,
       e.data::text AS data, e.salt, e.digest, e.chain,
       (SELECT p.chain FROM log.event p
         WHERE p.stream_id = e.stream_id AND p.version = e.version - 1) AS before,
       CASE WHEN e.redacted_at IS NOT NULL THEN EXISTS (
         SELECT FROM log.event t
          WHERE t.stream_id = 'document-' || (e.data ->> 'document_id') AND t.type = 'Erased'
            AND t.data ->> 'version_id' = e.data ->> 'version_id'
            AND t.data ->> 'reason' = 'request' AND t.position > e.position) END AS buried
  FROM log.event e
 WHERE e.position > :after AND e.position <= :until
 ORDER BY e.position LIMIT :limit;

-- name: links_of
-- As `links`, of all events of streams.
SELECT e.position, e.stream_id, e.version, e.event_id::text, e.type, e.schema_version, e.lane,
       e.project, e.causation_id::text, e.correlation_id::text, e.actor, e.traceparent,
       CASE WHEN isfinite(e.occurred_at)
            THEN (extract(epoch FROM e.occurred_at) * 1000000)::bigint END AS occurred,
       CASE WHEN isfinite(e.recorded_at)
            THEN (extract(epoch FROM e.recorded_at) * 1000000)::bigint END AS recorded,
       e.data::text AS data, e.salt, e.digest, e.chain,
       (SELECT p.chain FROM log.event p
         WHERE p.stream_id = e.stream_id AND p.version = e.version - 1) AS before,
       CASE WHEN e.redacted_at IS NOT NULL THEN EXISTS (
         SELECT FROM log.event t
          WHERE t.stream_id = 'document-' || (e.data ->> 'document_id') AND t.type = 'Erased'
            AND t.data ->> 'version_id' = e.data ->> 'version_id'
            AND t.data ->> 'reason' = 'request' AND t.position > e.position) END AS buried
  FROM log.event e
 WHERE e.stream_id = ANY(:streams::text[])
 ORDER BY e.position;
