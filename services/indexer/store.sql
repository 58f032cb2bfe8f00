-- name: live^
-- The generation that the project's queries read.
SELECT g.* FROM read.active a
  JOIN read.generation g USING (project, generation) WHERE a.project = :project;

-- name: share_project$
-- Writers of a project's index share this lock; the switch of generations takes it alone.
SELECT pg_advisory_xact_lock_shared(4204, hashtext(:project));

-- name: own_project$
SELECT pg_advisory_xact_lock(4204, hashtext(:project));

-- name: own_document$
-- One writer at a document: what it reads of the log it writes, before another one looks.
SELECT pg_advisory_xact_lock(4206, hashtext(:document_id));

-- name: own_rebuild$
-- One rebuild of a project at a time; false: another one runs.
SELECT pg_try_advisory_lock(4205, hashtext(:project));

-- name: disown_rebuild$
SELECT pg_advisory_unlock(4205, hashtext(:project));

-- name: add_generation$
-- The next generation of a project.
INSERT INTO read.generation (project, generation, embedder, dim, state, chunker)
SELECT :project, coalesce(max(generation), 0) + 1, :embedder, :dim, :state, :chunker
  FROM read.generation WHERE project = :project
RETURNING generation;

-- name: activate!
INSERT INTO read.active (project, generation) VALUES (:project, :generation)
ON CONFLICT (project) DO UPDATE SET generation = excluded.generation, switched_at = now();

-- name: set_state!
UPDATE read.generation SET state = :state, since = now()
 WHERE project = :project AND generation = :generation;

-- name: generations
SELECT * FROM read.generation
 WHERE project = :project AND state = ANY(:states::text[]) ORDER BY generation;

-- name: sizes
-- Every generation of a project (of all, when it is NULL) and what it holds.
SELECT g.project, g.generation, g.state, g.embedder, g.dim, g.chunker, g.created_at, g.since,
       count(p.version_id) AS versions, coalesce(sum(p.passages), 0) AS passages
  FROM read.generation g LEFT JOIN read.placed p USING (project, generation)
 WHERE :project::text IS NULL OR g.project = :project
 GROUP BY g.project, g.generation ORDER BY g.project, g.generation;

-- name: placed$
-- The cut of a version that a generation holds; '' while nobody knows.
SELECT chunks_sha256 FROM read.placed
 WHERE project = :project AND generation = :generation AND version_id = :version_id;

-- name: placed_in
-- All that a generation holds.
SELECT version_id, document_id, chunks_sha256, passages, windows_at FROM read.placed
 WHERE project = :project AND generation = :generation;

-- name: place!
INSERT INTO read.placed (project, generation, version_id, document_id, chunks_sha256, passages,
                         windows_at)
VALUES (:project, :generation, :version_id, :document_id, :chunks_sha256, :passages, :windows_at)
ON CONFLICT (project, generation, version_id) DO UPDATE SET
  chunks_sha256 = excluded.chunks_sha256, passages = excluded.passages,
  windows_at = excluded.windows_at;

-- name: unsettle!
UPDATE read.placed SET chunks_sha256 = ''
 WHERE project = :project AND generation = :generation AND version_id = :version_id;

-- name: settle!
-- Points of another cut are gone.
UPDATE read.placed SET chunks_sha256 = :chunks_sha256
 WHERE project = :project AND generation = :generation AND version_id = :version_id;

-- name: span!
UPDATE read.placed SET windows_at = :windows_at
 WHERE project = :project AND generation = :generation AND document_id = :document_id;

-- name: displace!
DELETE FROM read.placed
 WHERE project = :project AND generation = :generation AND version_id = :version_id;

-- name: forget_generation!
DELETE FROM read.generation WHERE project = :project AND generation = :generation;

-- name: drop_chunks!
DELETE FROM read.chunk WHERE project = :project AND generation = :generation;

-- name: drop_version_in!
DELETE FROM read.chunk
 WHERE project = :project AND generation = :generation AND version_id = :version_id;

-- name: points_in
-- Ids that the vector collection of this generation must hold, in order.
SELECT point_id FROM read.chunk WHERE project = :project AND generation = :generation
 ORDER BY point_id;

-- name: points_of
SELECT point_id FROM read.chunk
 WHERE project = :project AND generation = :generation AND version_id = :version_id;

-- name: projects
SELECT DISTINCT project FROM log.event WHERE type = 'DocumentReceived' ORDER BY project;

-- name: sample
-- A few passages, spread over the generation.
SELECT point_id, text FROM read.chunk WHERE project = :project AND generation = :generation
 ORDER BY point_id LIMIT :count;

-- name: put_chunks*!
INSERT INTO read.chunk (project, generation, version_id, chunk_id, document_id, source_id, ordinal,
  heading_path, byte_start, byte_end, title, text, language, terms, term_count, point_id)
VALUES (:project, :generation, :version_id, :chunk_id, :document_id, :source_id, :ordinal,
  :heading_path, :byte_start, :byte_end, :title, :text, :language, :terms::text::tsvector,
  :term_count, :point_id);

-- name: projected$
-- Where the read projection is.
SELECT coalesce(max(position), 0) FROM log.projection WHERE name = 'read';

-- name: settle_line!
-- The vectors of a document have its line.
UPDATE read.line SET settled = greatest(settled, :position::bigint) WHERE document_id = :document_id;

-- name: settle_project!
-- The vectors of a project have the lines that were said up to a position. One that the projection
-- moves at this moment is left to the event that moved it: nobody waits for somebody who waits.
UPDATE read.line SET settled = :position
 WHERE document_id IN (
   SELECT document_id FROM read.line
    WHERE project = :project AND settled < position AND position <= :position::bigint
      FOR UPDATE SKIP LOCKED);
