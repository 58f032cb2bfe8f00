-- name: live^
-- The generation that the project's queries read.
SELECT g.generation, g.embedder, g.dim FROM read.active a
  JOIN read.generation g USING (project, generation) WHERE a.project = :project;

-- name: share_project$
-- Writers of a project's index share this lock; the switch of generations takes it alone.
SELECT pg_advisory_xact_lock_shared(4204, hashtext(:project));

-- name: own_project$
SELECT pg_advisory_xact_lock(4204, hashtext(:project));

-- name: own_rebuild$
-- One rebuild of a project at a time; false: another one runs.
SELECT pg_try_advisory_lock(4205, hashtext(:project));

-- name: disown_rebuild$
SELECT pg_advisory_unlock(4205, hashtext(:project));

-- name: add_generation$
-- The next generation of a project.
INSERT INTO read.generation (project, generation, embedder, dim, state)
SELECT :project, coalesce(max(generation), 0) + 1, :embedder, :dim, :state
  FROM read.generation WHERE project = :project
RETURNING generation;

-- name: activate!
INSERT INTO read.active (project, generation) VALUES (:project, :generation)
ON CONFLICT (project) DO UPDATE SET generation = excluded.generation, switched_at = now();

-- name: set_state!
UPDATE read.generation SET state = :state WHERE project = :project AND generation = :generation;

-- name: generations
SELECT generation, embedder, dim, state FROM read.generation
 WHERE project = :project AND state <> 'retired' ORDER BY generation;

-- name: forget_generation!
DELETE FROM read.generation WHERE project = :project AND generation = :generation;

-- name: drop_chunks!
DELETE FROM read.chunk WHERE project = :project AND generation = :generation;

-- name: drop_version!
DELETE FROM read.chunk WHERE project = :project AND version_id = :version_id;

-- name: drop_version_in!
DELETE FROM read.chunk
 WHERE project = :project AND generation = :generation AND version_id = :version_id;

-- name: versions_in
SELECT DISTINCT version_id FROM read.chunk WHERE project = :project AND generation = :generation;

-- name: points_in
-- Ids that the vector collection of this generation must hold, in order.
SELECT point_id FROM read.chunk WHERE project = :project AND generation = :generation
 ORDER BY point_id;

-- name: points_of
SELECT point_id FROM read.chunk
 WHERE project = :project AND generation = :generation AND version_id = :version_id;

-- name: projects
SELECT project FROM read.active ORDER BY project;

-- name: left_over
-- Generations of a rebuild that died, or of one that died after its switch.
SELECT g.generation, g.embedder, g.dim FROM read.generation g
 WHERE g.project = :project AND g.state IN ('building', 'retired');

-- name: sample
-- A few passages, spread over the generation.
SELECT chunk_id, text FROM read.chunk WHERE project = :project AND generation = :generation
 ORDER BY md5(chunk_id) LIMIT 5;

-- name: put_chunks*!
INSERT INTO read.chunk (project, generation, version_id, chunk_id, document_id, source_id, ordinal,
  heading_path, byte_start, byte_end, title, text, language, terms, term_count, point_id)
VALUES (:project, :generation, :version_id, :chunk_id, :document_id, :source_id, :ordinal,
  :heading_path, :byte_start, :byte_end, :title, :text, :language, :terms::text::tsvector,
  :term_count, :point_id);
