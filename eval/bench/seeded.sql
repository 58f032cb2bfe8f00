-- name: make_room#
-- Rows that are on their way. The index over words is made once they are all there.
DROP INDEX read.chunk_terms;
CREATE TEMP TABLE made (number int, version_id text, point_id uuid, heading_path text[], language text,
  text text, bytes int, terms text, term_count int, valid_from timestamptz, valid_until timestamptz);

-- name: open_project!
WITH made AS (
  INSERT INTO read.generation (project, generation, embedder, dim, state)
  VALUES (:project, 1, :embedder, :dim, 'live') RETURNING project, generation
)
INSERT INTO read.active (project, generation) SELECT project, generation FROM made;

-- name: take!
INSERT INTO read.chunk (project, generation, version_id, chunk_id, document_id, source_id, ordinal,
  heading_path, byte_start, byte_end, title, text, language, terms, term_count, point_id)
SELECT :project, 1, version_id, version_id || ':' || number, version_id, repeat(version_id, 2), number % 20,
       heading_path, 0, bytes, heading_path[1], text, language, terms::tsvector, term_count, point_id
  FROM made;

-- name: empty!
WITH kept AS (
  INSERT INTO read.validity (version_id, document_id, project, valid_from, valid_until)
  SELECT DISTINCT version_id, version_id, 'default', valid_from, valid_until FROM made
  ON CONFLICT DO NOTHING
)
DELETE FROM made;

-- name: finish!
INSERT INTO read.version (version_id, document_id, source_id, project, source_key, name, title,
  media_type, size_bytes, status, received_at, valid_from, job_id, position, live)
SELECT version_id, document_id, repeat(version_id, 2), :project, version_id, version_id, 'Act',
       'text/markdown', 20000, 'indexed', valid_from, valid_from, version_id::uuid, 1, true
  FROM read.validity;

-- name: index_terms#
CREATE INDEX chunk_terms ON read.chunk USING gin (terms) WITH (gin_pending_list_limit = 256);

-- name: count_vectors$
SELECT count(*) FROM cache.embedding;
