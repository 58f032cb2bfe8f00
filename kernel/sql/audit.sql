-- name: documents
-- Documents in the order in which they came: each begins with its receipt.
SELECT position, project, data ->> 'document_id' AS document_id FROM log.event
 WHERE type = 'DocumentReceived' AND version = 1 AND position > :after
   AND (:project::text IS NULL OR project = :project)
 ORDER BY position LIMIT :limit;

-- name: size^
-- How much there is to look at.
SELECT coalesce((SELECT position FROM log.head), 0) AS head, count(*) AS documents
  FROM log.event
 WHERE type = 'DocumentReceived' AND version = 1 AND (:project::text IS NULL OR project = :project);
