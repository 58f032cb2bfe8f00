-- name: open_project!
-- The live generation of a project.
WITH made AS (
  INSERT INTO read.generation (project, generation, embedder, dim, state)
  VALUES (:project, 1, :embedder, :dim, 'live') RETURNING project, generation
)
INSERT INTO read.active (project, generation) SELECT project, generation FROM made;

-- name: put_versions*!
INSERT INTO read.version (version_id, document_id, source_id, project, source_key, name, title,
  media_type, size_bytes, status, received_at, valid_from, job_id, position, live)
VALUES (:version_id, :document_id, :source_id, :project, :name, :name, :name, 'text/markdown', :bytes,
  'indexed', :valid_from, :valid_from, :job_id, 1, true);

-- name: put_windows*!
INSERT INTO read.validity (version_id, document_id, project, valid_from, valid_until)
VALUES (:version_id, :document_id, :project, :valid_from, :valid_until);

-- name: put_passages*!
INSERT INTO read.chunk (project, generation, version_id, chunk_id, document_id, source_id, ordinal,
  heading_path, byte_start, byte_end, title, text, language, terms, term_count, point_id)
VALUES (:project, 1, :version_id, :chunk_id, :document_id, :source_id, 0, '{}', 0, :bytes, :name,
  :text, 'en', :terms::text::tsvector, :term_count, :point_id);
