-- name: called
-- Passages of that name, in any project and generation, with what filters ask of their versions.
SELECT c.point_id, c.version_id, c.chunk_id, c.document_id, c.project, c.generation, c.heading_path,
       c.title, c.language, a.generation IS NOT NULL AS active,
       v.status, v.media_type, v.labels, v.received_at
  FROM read.chunk c
  JOIN read.version v ON v.version_id = c.version_id
  LEFT JOIN read.active a ON a.project = c.project AND a.generation = c.generation
 WHERE c.chunk_id = :chunk AND (:version::text IS NULL OR c.version_id = :version)
 ORDER BY v.received_at DESC, c.version_id, c.generation DESC
 LIMIT 1000;

-- name: status$
-- Where a version is.
SELECT status FROM read.version WHERE version_id = :version;

-- name: windows
-- When versions were valid, by what was known at :known.
SELECT version_id, valid_from, valid_until, recorded_from, recorded_until
  FROM read.known w
 WHERE version_id = ANY (:versions::text[])
   AND (:known::timestamptz IS NULL AND w.current
        OR w.recorded_from <= :known AND (w.current OR w.recorded_until > :known))
   AND (:known IS NULL OR EXISTS (SELECT FROM read.validity n WHERE n.version_id = w.version_id))
 ORDER BY valid_from;
