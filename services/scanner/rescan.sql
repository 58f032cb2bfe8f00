-- name: receipts
-- Receipts of a project behind a position and up to another, in order.
SELECT * FROM log.event
 WHERE type = 'DocumentReceived' AND project = :project AND position > :after AND position <= :until
 ORDER BY position LIMIT :limit;

-- name: count_receipts$
SELECT count(*) FROM log.event WHERE type = 'DocumentReceived' AND project = :project;

-- name: projects
-- Projects that ever received something.
SELECT DISTINCT project FROM log.event WHERE type = 'DocumentReceived' ORDER BY project;

-- name: rescanned
-- Projects that ever had a re-scan.
SELECT DISTINCT project FROM log.event WHERE type = 'RescanStarted' ORDER BY project;

-- name: open
-- Projects whose newest re-scan is not over.
SELECT project FROM (
  SELECT DISTINCT ON (project) project, type FROM log.event
   WHERE type IN ('RescanStarted', 'RescanFinished')
   ORDER BY project, position DESC) newest
 WHERE type = 'RescanStarted' ORDER BY project;

-- name: is_open$
-- Is this the re-scan of the project that is open?
SELECT NOT EXISTS (
  SELECT FROM log.event WHERE type = 'RescanFinished' AND data ->> 'rescan_id' = :rescan_id);

-- name: project_of$
SELECT project FROM log.event
 WHERE type = 'RescanStarted' AND data ->> 'rescan_id' = :rescan_id;

-- name: life
-- All events of one version, in log order.
SELECT * FROM log.event
 WHERE stream_id IN ('document-' || :document_id::text, 'version-' || :version_id::text)
   AND data ->> 'version_id' = :version_id
 ORDER BY position;

-- name: moved$
-- Did anything happen to a version behind a position?
SELECT EXISTS (
  SELECT FROM log.event
   WHERE stream_id IN ('document-' || :document_id::text, 'version-' || :version_id::text)
     AND data ->> 'version_id' = :version_id AND position > :position);

-- name: released$
-- Did a person release exactly this text in the project, and nobody refuse it since?
SELECT coalesce((
  SELECT type = 'Released' FROM log.event
   WHERE type IN ('Released', 'Rejected') AND project = :project
     AND data ->> 'text_sha256' = :text_sha256
     AND (type = 'Rejected' OR data ->> 'meta_sha256' IS NOT DISTINCT FROM :meta_sha256::text)
   ORDER BY position DESC LIMIT 1), false);

-- name: hits
-- What a re-scan took out of the index, and what was decided about each since.
SELECT h.position, h.data, r.name, r.source_key, d.decision
  FROM log.event h
  CROSS JOIN LATERAL (
    SELECT e.data ->> 'name' AS name, e.data ->> 'source_key' AS source_key FROM log.event e
     WHERE e.stream_id = 'document-' || (h.data ->> 'document_id') AND e.type = 'DocumentReceived'
       AND e.data ->> 'version_id' = h.data ->> 'version_id'
     ORDER BY e.version DESC LIMIT 1) r
  LEFT JOIN LATERAL (
    SELECT CASE e.type WHEN 'Released' THEN 'released' WHEN 'Rejected' THEN 'rejected'
                       ELSE 'over' END AS decision
      FROM log.event e
     WHERE e.stream_id IN (h.stream_id, 'document-' || (h.data ->> 'document_id'))
       AND e.position > h.position AND e.data ->> 'version_id' = h.data ->> 'version_id'
       AND (e.type = 'Erased'
            OR e.type = 'Failed' AND e.data ->> 'code' = 'cancelled'
            OR e.type IN ('Released', 'Rejected')
               AND e.data ->> 'text_sha256' = h.data ->> 'text_sha256')
     ORDER BY e.type <> 'Erased', e.position DESC LIMIT 1) d ON true
 WHERE h.type = 'ScanVerdict' AND h.data ->> 'rescan' = :rescan_id
 ORDER BY h.position LIMIT :limit;
