-- name: active$
-- The generation that a query reads, once.
SELECT generation FROM read.active WHERE project = :project;

-- name: passages
-- Fused candidates that are valid at :moment (any time, when it is NULL), with the window that
-- makes them so: the newest one. This is the last word on validity; the vector payload may lag.
SELECT c.version_id, c.chunk_id, c.document_id, c.source_id, c.heading_path, c.byte_start,
       c.byte_end, c.title, c.text, c.language, w.valid_from, w.valid_until
  FROM unnest(:version_ids::text[], :chunk_ids::text[]) AS k(version_id, chunk_id)
  JOIN read.chunk c USING (version_id, chunk_id)
  CROSS JOIN LATERAL (
    SELECT valid_from, valid_until FROM read.validity v
     WHERE v.version_id = c.version_id
       AND (:moment::timestamptz IS NULL
            OR (v.valid_from <= :moment AND (v.valid_until IS NULL OR v.valid_until > :moment)))
     ORDER BY valid_from DESC LIMIT 1) w
 WHERE c.project = :project AND c.generation = :generation;

-- name: version
-- Versions that an id names: a version, a document (all its versions), or bytes.
SELECT v.*, coalesce(
         (SELECT jsonb_agg(jsonb_build_object('version_id', w.version_id, 'valid_from', w.valid_from,
                                              'valid_until', w.valid_until) ORDER BY w.valid_from)
            FROM read.validity w WHERE w.version_id = v.version_id), '[]') AS windows
  FROM read.version v
 WHERE v.document_id IN (
   SELECT document_id FROM read.version
    WHERE version_id = :id OR document_id = :id OR source_id = :id)
 ORDER BY v.received_at, v.version_id;

-- name: attachments_of
-- The newest version of each document that was attached to one of these versions.
SELECT * FROM (
  SELECT DISTINCT ON (document_id) version_id, document_id, name, media_type, status, received_at
    FROM read.version WHERE parent = ANY(:version_ids::text[])
   ORDER BY document_id, received_at DESC, version_id) newest
 ORDER BY received_at, name, version_id;

-- name: relative^
SELECT version_id, document_id, name, media_type, status FROM read.version
 WHERE version_id = :version_id;

-- name: left_out$
-- What AttachmentsReceived said last about a version.
SELECT attachments FROM read.version WHERE version_id = :version_id;

-- name: listing
-- A page of versions, newest first.
SELECT v.*, coalesce(
         (SELECT jsonb_agg(jsonb_build_object('version_id', w.version_id, 'valid_from', w.valid_from,
                                              'valid_until', w.valid_until) ORDER BY w.valid_from)
            FROM read.validity w WHERE w.version_id = v.version_id), '[]') AS windows
  FROM read.version v
 WHERE (:project::text IS NULL OR v.project = :project)
   AND (:status::text IS NULL OR v.status = :status)
   AND (:trusted::boolean IS NULL OR v.trusted = :trusted)
   AND (:before::timestamptz IS NULL OR (v.received_at, v.version_id) < (:before, :before_id::text))
 ORDER BY v.received_at DESC, v.version_id DESC LIMIT :limit;

-- name: count_listing$
-- How many versions such a list has, counted up to a limit.
SELECT count(*) FROM (
  SELECT FROM read.version v
   WHERE (:project::text IS NULL OR v.project = :project)
     AND (:status::text IS NULL OR v.status = :status)
     AND (:trusted::boolean IS NULL OR v.trusted = :trusted)
   LIMIT :limit) counted;

-- name: judgements
-- Verdicts on versions, and receipts of documents, in order.
SELECT * FROM log.event
 WHERE stream_id = ANY(:streams::text[]) AND type IN ('ScanVerdict', 'DocumentReceived')
 ORDER BY position;

-- name: job^
SELECT * FROM read.job WHERE job_id = :job_id;

-- name: jobs
-- A page of jobs, newest first.
SELECT * FROM read.job
 WHERE (:project::text IS NULL OR project = :project)
   AND (:before::timestamptz IS NULL OR (started_at, job_id::text) < (:before, :before_id::text))
 ORDER BY started_at DESC, job_id DESC LIMIT :limit;
