-- name: purge^
-- Passages of a version in every generation, and cached vectors of texts that nobody else has: of
-- passages that it has here, and of those that were embedded for it and never came here.
WITH gone AS (
  DELETE FROM read.chunk WHERE project = :project AND version_id = :version_id
  RETURNING read.text_key(text) AS key
), mine AS (
  SELECT key FROM gone
  UNION
  SELECT text_sha256 FROM cache.embedding WHERE version_id = :version_id
), lonely AS (
  SELECT key FROM mine
   WHERE NOT EXISTS (SELECT FROM read.chunk c
                      WHERE read.text_key(c.text) = mine.key AND c.version_id <> :version_id)
), forgotten AS (
  DELETE FROM cache.embedding e USING lonely l WHERE e.text_sha256 = l.key RETURNING e.text_sha256
), placed AS (
  DELETE FROM read.placed WHERE project = :project AND version_id = :version_id
), left_to_others AS (
  -- whose they are now nobody needs to know: they go when the last passage with the text goes
  UPDATE cache.embedding SET version_id = NULL
   WHERE version_id = :version_id AND text_sha256 NOT IN (SELECT key FROM lonely)
)
SELECT (SELECT count(*) FROM gone) AS passages,
       (SELECT count(*) FROM forgotten) AS forgotten,
       (SELECT count(*) FROM mine) - (SELECT count(*) FROM lonely) AS kept;

-- name: is_used$
-- Does a project's index hold anything?
SELECT EXISTS (SELECT FROM read.chunk WHERE project = :project);

-- name: deactivate!
DELETE FROM read.active WHERE project = :project;
