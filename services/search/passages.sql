-- name: chunk^
-- A passage of a version, by the id that a search result has.
SELECT c.byte_start, c.byte_end, c.title, c.heading_path, c.text
  FROM read.active a JOIN read.chunk c USING (project, generation)
 WHERE a.project = :project AND c.version_id = :version_id AND c.chunk_id = :chunk_id;

-- name: before
-- The last passages that end before a range begins, in the order of the body.
SELECT * FROM (
  SELECT c.chunk_id, c.heading_path, c.byte_start, c.byte_end, c.title, c.text
    FROM read.active a JOIN read.chunk c USING (project, generation)
   WHERE a.project = :project AND c.version_id = :version_id AND c.byte_end <= :byte_start
   ORDER BY c.byte_start DESC, c.byte_end DESC LIMIT :limit) last
 ORDER BY byte_start, byte_end;

-- name: after
-- The first passages that begin after a range ends, in the order of the body.
SELECT c.chunk_id, c.heading_path, c.byte_start, c.byte_end, c.title, c.text
  FROM read.active a JOIN read.chunk c USING (project, generation)
 WHERE a.project = :project AND c.version_id = :version_id AND c.byte_start >= :byte_end
 ORDER BY c.byte_start, c.byte_end LIMIT :limit;
