-- name: lock_position$
-- Where the projection is; other replicas wait here.
SELECT position FROM log.projection WHERE name = 'read' FOR UPDATE;

-- name: start!
INSERT INTO log.projection (name) VALUES ('read') ON CONFLICT DO NOTHING;

-- name: revision$
-- Which fold made the tables.
SELECT revision FROM log.projection WHERE name = 'read';

-- name: set_position!
UPDATE log.projection SET position = :position, updated_at = now() WHERE name = 'read';

-- name: set_revision!
UPDATE log.projection SET revision = :revision WHERE name = 'read';

-- name: position$
SELECT coalesce(max(position), 0) FROM log.projection WHERE name = 'read';

-- name: known
-- The rows of versions and jobs that a batch touches, as JSON. Each is looked up by an index, for the
-- OFFSET keeps the planner from reading a table from end to end: its statistics are of before the
-- replay, and a plan made for the first batch is the plan of all.
SELECT 'version' AS kind, r.row FROM unnest(:versions::text[]) AS i (id) CROSS JOIN LATERAL (
  SELECT to_jsonb(v) AS row FROM read.version v WHERE v.version_id = i.id OFFSET 0) AS r
UNION ALL
SELECT 'job', r.row FROM unnest(:jobs::uuid[]) AS i (id) CROSS JOIN LATERAL (
  SELECT to_jsonb(j) AS row FROM read.job j WHERE j.job_id = i.id OFFSET 0) AS r
UNION ALL
SELECT 'job', r.row FROM unnest(:versions::text[]) AS i (id) CROSS JOIN LATERAL (
  SELECT v.job_id FROM read.version v WHERE v.version_id = i.id OFFSET 0) AS own CROSS JOIN LATERAL (
  SELECT to_jsonb(j) AS row FROM read.job j
   WHERE j.job_id = own.job_id AND j.job_id <> ALL (:jobs::uuid[]) OFFSET 0) AS r;

-- name: known_windows
-- As `known`: windows, the versions whose windows are held, and all attempts at what is erased. No
-- LIMIT 1: where a document has no window, that reads the whole table in the hope of one.
SELECT 'window' AS kind, r.row FROM unnest(:windowed::text[]) AS i (id) CROSS JOIN LATERAL (
  SELECT to_jsonb(w) AS row FROM read.validity w WHERE w.document_id = i.id OFFSET 0) AS r
UNION ALL
SELECT 'window', r.row FROM unnest(:shown::text[]) AS i (id) CROSS JOIN LATERAL (
  SELECT min(w.ctid) AS at FROM read.validity w WHERE w.document_id = i.id) AS one CROSS JOIN LATERAL (
  SELECT to_jsonb(w) AS row FROM read.validity w WHERE w.ctid = one.at OFFSET 0) AS r
UNION ALL
SELECT 'window', r.row FROM unnest(:moved::text[]) AS i (id) CROSS JOIN LATERAL (
  SELECT to_jsonb(w) AS row FROM read.validity w WHERE w.version_id = i.id OFFSET 0) AS r
UNION ALL
SELECT 'version', r.row FROM unnest(:lines::text[]) AS i (id) CROSS JOIN LATERAL (
  SELECT to_jsonb(v) AS row FROM read.version v
   WHERE v.document_id = i.id AND v.held IS NOT NULL OFFSET 0) AS r
UNION ALL
SELECT 'job', r.row FROM unnest(:erased::text[]) AS i (id) CROSS JOIN LATERAL (
  SELECT to_jsonb(j) AS row FROM read.job j WHERE j.version_id = i.id OFFSET 0) AS r;

-- name: drop_windows!
-- Windows that are not said any more.
DELETE FROM read.validity WHERE ctid = ANY (ARRAY(
  SELECT w.ctid FROM unnest(:version_ids::text[], :froms::timestamptz[]) AS i (v, f)
   CROSS JOIN LATERAL (
     SELECT o.ctid FROM read.validity o WHERE o.version_id = i.v AND o.valid_from = i.f OFFSET 0) AS w));

-- name: write!
-- Whole rows, as the fold has them, and the position, if one is given.
WITH place AS (
  UPDATE log.projection SET position = :position, updated_at = now()
   WHERE name = 'read' AND :position::bigint IS NOT NULL
), versions AS (
  INSERT INTO read.version
    (version_id, document_id, source_id, project, source_key, name, title, media_type, size_bytes,
     language, status, stage, verdict, parser, converter, embedder, parsed_sha256, body_sha256,
     meta_sha256, chunks_sha256, body_bytes, chunk_count, error, supersedes, trusted, received_at,
     valid_from, job_id, position, parent, live, pending, attachments, held, labels,
     summary_sha256)
  SELECT
     version_id, document_id, source_id, project, source_key, name, title, media_type, size_bytes,
     language, status, stage, verdict, parser, converter, embedder, parsed_sha256, body_sha256,
     meta_sha256, chunks_sha256, body_bytes, chunk_count, error, supersedes, trusted, received_at,
     valid_from, job_id, position, parent, live, pending, attachments, held, labels,
     summary_sha256
    FROM jsonb_populate_recordset(NULL::read.version, :versions::jsonb)
  ON CONFLICT (version_id) DO UPDATE SET
    source_key = excluded.source_key, name = excluded.name, title = excluded.title,
    media_type = excluded.media_type, language = excluded.language, status = excluded.status,
    stage = excluded.stage, verdict = excluded.verdict, parser = excluded.parser,
    converter = excluded.converter, embedder = excluded.embedder,
    parsed_sha256 = excluded.parsed_sha256, body_sha256 = excluded.body_sha256,
    meta_sha256 = excluded.meta_sha256, chunks_sha256 = excluded.chunks_sha256,
    body_bytes = excluded.body_bytes, chunk_count = excluded.chunk_count, error = excluded.error,
    supersedes = excluded.supersedes, trusted = excluded.trusted,
    received_at = excluded.received_at, valid_from = excluded.valid_from, job_id = excluded.job_id,
    position = excluded.position, parent = excluded.parent, live = excluded.live,
    pending = excluded.pending, attachments = excluded.attachments, held = excluded.held,
    labels = excluded.labels, summary_sha256 = excluded.summary_sha256
)
INSERT INTO read.job (job_id, project, document_id, version_id, name, status, stage, chunk_count,
                      error, started_at, updated_at, attempt)
SELECT job_id, project, document_id, version_id, name, status, stage, chunk_count, error,
       started_at, updated_at, attempt
  FROM jsonb_populate_recordset(NULL::read.job, :jobs::jsonb)
ON CONFLICT (job_id) DO UPDATE SET
  name = excluded.name, status = excluded.status, stage = excluded.stage,
  chunk_count = excluded.chunk_count, error = excluded.error, updated_at = excluded.updated_at;

-- name: write_windows!
-- `read.line` is not only the log's: what the vectors know of a line is left as it is, and where
-- nothing moved, so is the row, which somebody may be writing to.
WITH past AS (
  INSERT INTO read.validity_past (version_id, document_id, project, valid_from, valid_until,
                                  recorded_from, recorded_until)
  SELECT version_id, document_id, project, valid_from, valid_until, recorded_from, recorded_until
    FROM jsonb_populate_recordset(NULL::read.validity_past, :past::jsonb)
  ON CONFLICT (version_id, valid_from, recorded_from)
  DO UPDATE SET valid_until = excluded.valid_until, recorded_until = excluded.recorded_until
), lines AS (
  INSERT INTO read.line AS l (document_id, project, position)
  SELECT document_id, project, position
    FROM jsonb_populate_recordset(NULL::read.line, :lines::jsonb) AS n
   WHERE NOT EXISTS (
     SELECT FROM read.line o WHERE o.document_id = n.document_id AND o.position >= n.position OFFSET 0)
  ON CONFLICT (document_id) DO UPDATE SET position = greatest(l.position, excluded.position)
)
INSERT INTO read.validity (version_id, document_id, project, valid_from, valid_until, recorded_from)
SELECT version_id, document_id, project, valid_from, valid_until, recorded_from
  FROM jsonb_populate_recordset(NULL::read.validity, :windows::jsonb)
ON CONFLICT (version_id, valid_from)
DO UPDATE SET valid_until = excluded.valid_until, recorded_from = excluded.recorded_from;

-- name: clear_versions!
-- Not TRUNCATE: the role has no right to it, and it would shut readers out. `read.line` stays: what
-- the vectors know is not told by the log.
WITH v AS (DELETE FROM read.version), w AS (DELETE FROM read.validity),
     p AS (DELETE FROM read.validity_past)
DELETE FROM read.job;
