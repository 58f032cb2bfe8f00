-- name: position$
-- Where the projection is; it stands still while this is held.
SELECT position FROM log.projection WHERE name = 'read' FOR UPDATE;

-- name: rows
-- All rows of the projection about a document. `settled` is the indexer's word, not the log's.
SELECT 'version' AS kind, version_id AS id, version_id, to_jsonb(v) AS row
  FROM read.version v WHERE document_id = :document_id
UNION ALL
SELECT 'validity', concat_ws(' ', version_id, valid_from), version_id, to_jsonb(w)
  FROM read.validity w WHERE document_id = :document_id
UNION ALL
SELECT 'validity-past', concat_ws(' ', version_id, valid_from, recorded_from), version_id, to_jsonb(p)
  FROM read.validity_past p WHERE document_id = :document_id
UNION ALL
SELECT 'line', document_id, NULL, to_jsonb(l) - 'settled'
  FROM read.line l WHERE document_id = :document_id
UNION ALL
SELECT 'job', job_id::text, version_id, to_jsonb(j)
  FROM read.job j WHERE job_id = ANY(:jobs::uuid[])
ORDER BY 1, 2;

-- name: settled$
-- What the indexer said of a document's vectors.
SELECT settled FROM read.line WHERE document_id = :document_id;

-- name: clear!
-- Forget all rows about a document.
WITH v AS (DELETE FROM read.version WHERE document_id = :document_id),
     w AS (DELETE FROM read.validity WHERE document_id = :document_id),
     p AS (DELETE FROM read.validity_past WHERE document_id = :document_id),
     l AS (DELETE FROM read.line WHERE document_id = :document_id)
DELETE FROM read.job WHERE job_id = ANY(:jobs::uuid[]);

-- name: settle!
UPDATE read.line SET settled = least(:settled, position) WHERE document_id = :document_id;

-- name: strays
-- Rows about documents, versions and jobs that the log does not know.
SELECT 'version' AS kind, version_id AS id, project, document_id, version_id FROM read.version r
 WHERE (:project::text IS NULL OR project = :project) AND NOT EXISTS (
   SELECT FROM log.event e WHERE e.stream_id = 'document-' || r.document_id AND e.version = 1)
UNION ALL
SELECT 'validity', concat_ws(' ', version_id, valid_from), project, document_id, version_id
  FROM read.validity r
 WHERE (:project::text IS NULL OR project = :project) AND NOT EXISTS (
   SELECT FROM log.event e WHERE e.stream_id = 'document-' || r.document_id AND e.version = 1)
UNION ALL
SELECT 'validity-past', concat_ws(' ', version_id, valid_from, recorded_from), project, document_id,
       version_id
  FROM read.validity_past r
 WHERE (:project::text IS NULL OR project = :project) AND NOT EXISTS (
   SELECT FROM log.event e WHERE e.stream_id = 'document-' || r.document_id AND e.version = 1)
UNION ALL
SELECT 'line', document_id, project, document_id, NULL FROM read.line r
 WHERE (:project::text IS NULL OR project = :project) AND NOT EXISTS (
   SELECT FROM log.event e WHERE e.stream_id = 'document-' || r.document_id AND e.version = 1)
UNION ALL
SELECT 'job', job_id::text, project, document_id, version_id FROM read.job r
 WHERE (:project::text IS NULL OR project = :project) AND NOT EXISTS (
   SELECT FROM log.event e WHERE e.correlation_id = r.job_id AND e.type = 'DocumentReceived');

-- name: remove!
-- Rows of documents and jobs that the log does not know.
WITH v AS (DELETE FROM read.version WHERE document_id = ANY(:documents::text[])),
     w AS (DELETE FROM read.validity WHERE document_id = ANY(:documents::text[])),
     p AS (DELETE FROM read.validity_past WHERE document_id = ANY(:documents::text[])),
     l AS (DELETE FROM read.line WHERE document_id = ANY(:documents::text[]))
DELETE FROM read.job WHERE job_id = ANY(:jobs::uuid[]);
