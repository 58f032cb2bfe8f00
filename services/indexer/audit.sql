-- name: placed_of
-- What a generation says that it holds of a document.
SELECT version_id, chunks_sha256, passages, windows_at FROM read.placed
 WHERE project = :project AND generation = :generation AND document_id = :document_id;

-- name: differing
-- Passages that are not there, or not as they must be.
SELECT x.point_id, c.chunk_id IS NULL AS missing
  FROM jsonb_to_recordset(:rows) AS x (
         chunk_id text, document_id text, source_id text, ordinal int, heading_path text[],
         byte_start int, byte_end int, title text, text text, language text, terms text,
         term_count int, point_id uuid)
  LEFT JOIN read.chunk c ON c.project = :project AND c.generation = :generation
        AND c.version_id = :version_id AND c.chunk_id = x.chunk_id
 WHERE c.chunk_id IS NULL
    OR (c.document_id, c.source_id, c.ordinal, c.heading_path, c.byte_start, c.byte_end, c.title,
        c.text, c.language, c.terms, c.term_count, c.point_id)
       IS DISTINCT FROM
       (x.document_id, x.source_id, x.ordinal, x.heading_path, x.byte_start, x.byte_end, x.title,
        x.text, x.language, x.terms::tsvector, x.term_count, x.point_id)
 ORDER BY x.ordinal;

-- name: others
-- Passages of a version that are not of its cut.
SELECT point_id FROM read.chunk
 WHERE project = :project AND generation = :generation AND version_id = :version_id
   AND chunk_id <> ALL(:chunk_ids::text[])
 ORDER BY point_id;

-- name: stray_rows
-- Versions with passages, or that are said to be placed, and that the log does not know.
SELECT version_id, min(document_id) AS document_id, count(*) AS count FROM (
  SELECT version_id, document_id FROM read.chunk
   WHERE project = :project AND generation = :generation
  UNION ALL
  SELECT version_id, document_id FROM read.placed
   WHERE project = :project AND generation = :generation) held
 WHERE NOT EXISTS (
   SELECT FROM log.event e WHERE e.stream_id = 'version-' || held.version_id AND e.version = 1
      AND e.project = :project)
 GROUP BY version_id ORDER BY version_id;

-- name: unknown
-- Those of these versions that the log does not know in this project.
SELECT v FROM unnest(:version_ids::text[]) AS u (v)
 WHERE NOT EXISTS (
   SELECT FROM log.event e WHERE e.stream_id = 'version-' || v AND e.version = 1
      AND e.project = :project)
 ORDER BY v;

-- name: unsettled$
-- Does the line of a document say that its vectors do not know it yet?
SELECT EXISTS (SELECT FROM read.line WHERE document_id = :document_id AND settled < position);
