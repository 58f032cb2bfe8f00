-- name: head^
-- Position and time of the newest event; no row in an empty log.
SELECT e.position, e.recorded_at FROM log.head h JOIN log.event e USING (position);

-- name: position_before$
-- Position of the last event that was recorded before a moment, 0 if there is none. Positions have
-- no gaps and recorded time never goes back, so the place is found by halving: some twenty reads of
-- the primary key, and no index of times.
WITH RECURSIVE half (low, high) AS (
  SELECT 0::bigint, position + 1 FROM log.head
  UNION ALL
  SELECT CASE WHEN e.recorded_at < :moment THEN e.position ELSE h.low END,
         CASE WHEN e.recorded_at < :moment THEN h.high ELSE e.position END
    FROM half h JOIN log.event e ON e.position = (h.low + h.high) / 2
   WHERE h.high - h.low > 1
)
SELECT low FROM half WHERE high - low = 1;

-- name: events
-- Events after a position, up to another one.
SELECT position, stream_id, version, event_id, type, schema_version, lane, project, causation_id,
       correlation_id, actor, traceparent, occurred_at, recorded_at, data
  FROM log.event WHERE position > :after AND position <= :until ORDER BY position LIMIT :limit;

-- name: events_of_project
-- Of one project. Its positions come from their own index, which alone suffices for them: asked for
-- whole rows, the planner goes through the log where it takes the project for a large one.
WITH next AS (
  SELECT position FROM log.event
   WHERE project = :project AND position > :after AND position <= :until
   ORDER BY position LIMIT :limit)
SELECT position, stream_id, version, event_id, type, schema_version, lane, project, causation_id,
       correlation_id, actor, traceparent, occurred_at, recorded_at, data
  FROM log.event JOIN next USING (position) ORDER BY position;

-- name: events_of_stream
-- Of one stream. Its events are few, so they are sorted, whatever the planner thinks of the log.
WITH mine AS MATERIALIZED (
  SELECT position, stream_id, version, event_id, type, schema_version, lane, project, causation_id,
         correlation_id, actor, traceparent, occurred_at, recorded_at, data
    FROM log.event WHERE stream_id = :stream)
SELECT * FROM mine
 WHERE position > :after AND position <= :until
   AND (:types::text[] IS NULL OR type = ANY (:types)) AND (:project::text IS NULL OR project = :project)
 ORDER BY position LIMIT :limit;

-- name: events_of_types
-- Of some types, and perhaps of one project: the next positions of each type come from an index in
-- order, so a rare type costs nothing and a common one no more than the page.
WITH next AS (
  SELECT found.position
    FROM unnest(:types::text[]) AS t (type),
         LATERAL (SELECT e.position FROM log.event e
                   WHERE e.type = t.type AND e.position > :after AND e.position <= :until
                     AND (:project::text IS NULL OR e.project = :project)
                   ORDER BY e.position LIMIT :limit) AS found
   ORDER BY found.position LIMIT :limit)
SELECT position, stream_id, version, event_id, type, schema_version, lane, project, causation_id,
       correlation_id, actor, traceparent, occurred_at, recorded_at, data
  FROM log.event JOIN next USING (position) ORDER BY position;

-- name: counts
-- How many events of each type a project has in a range, and where the first and the last are.
SELECT project, type, count(*) AS events, min(position) AS first, max(position) AS last
  FROM log.event WHERE position > :after AND position <= :until
 GROUP BY project, type ORDER BY project, type;

-- name: counts_of_project
-- Of one project.
SELECT project, type, count(*) AS events, min(position) AS first, max(position) AS last
  FROM log.event WHERE project = :project AND position > :after AND position <= :until
 GROUP BY project, type ORDER BY project, type;

-- name: counts_of_types
-- Of some types, and perhaps of one project.
SELECT project, type, count(*) AS events, min(position) AS first, max(position) AS last
  FROM log.event
 WHERE type = ANY (:types::text[]) AND position > :after AND position <= :until
   AND (:project::text IS NULL OR project = :project)
 GROUP BY project, type ORDER BY project, type;

-- name: counts_of_stream
-- Of one stream, and perhaps of some types and one project.
SELECT project, type, count(*) AS events, min(position) AS first, max(position) AS last
  FROM log.event
 WHERE stream_id = :stream AND position > :after AND position <= :until
   AND (:types::text[] IS NULL OR type = ANY (:types))
   AND (:project::text IS NULL OR project = :project)
 GROUP BY project, type ORDER BY project, type;

-- name: recorded_at$
-- When an event was recorded.
SELECT recorded_at FROM log.event WHERE position = :position;
