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

-- name: receive!
-- A version is there, or is tried again after a failure.
INSERT INTO read.version AS v
  (version_id, document_id, source_id, project, source_key, name, title, media_type, size_bytes,
   status, stage, supersedes, trusted, received_at, valid_from, job_id, position, parent)
VALUES (:version_id, :document_id, :source_id, :project, :source_key, :name, :name, :media_type,
        :size_bytes, 'received', 'converter', :supersedes, :trusted, :at, :valid_from, :job_id, :position,
        :parent)
ON CONFLICT (version_id) DO UPDATE SET
  name = excluded.name, media_type = excluded.media_type, status = 'received', stage = 'converter',
  supersedes = excluded.supersedes, trusted = excluded.trusted, received_at = excluded.received_at,
  valid_from = excluded.valid_from, job_id = excluded.job_id, position = excluded.position,
  parent = excluded.parent, title = excluded.title, source_key = excluded.source_key,
  pending = NULL, attachments = NULL,
  error = NULL, verdict = NULL, language = NULL, parser = NULL, converter = NULL, embedder = NULL,
  parsed_sha256 = NULL, body_sha256 = NULL, meta_sha256 = NULL, chunks_sha256 = NULL,
  body_bytes = NULL, chunk_count = NULL;

-- name: receive_again$
-- Another attempt at a version that is in the index: it stays as it is until that is indexed.
UPDATE read.version SET job_id = :job_id, position = :position, status = 'indexed', stage = NULL,
  error = NULL, pending = '{}', parent = :parent
WHERE version_id = :version_id AND live RETURNING true;

-- name: start_job!
INSERT INTO read.job (job_id, project, document_id, version_id, name, status, stage, started_at,
                      updated_at, attempt)
VALUES (:job_id, :project, :document_id, :version_id, :name, 'received', 'converter', :at, :at, :attempt)
ON CONFLICT (job_id) DO NOTHING;

-- name: standing^
-- What an event of a job meets: the version, that job, and whether the version's own is cancelled.
SELECT v.live, v.job_id, v.pending, v.parsed_sha256, v.body_sha256, v.meta_sha256,
       v.held IS NOT NULL AS held, j.status AS job_status,
       coalesce(j.error ->> 'code' = 'cancelled', false) AS cancelled,
       coalesce(own.error ->> 'code' = 'cancelled', false) AS own_cancelled
  FROM read.version v
  LEFT JOIN read.job j ON j.job_id = :job_id
  LEFT JOIN read.job own ON own.job_id = v.job_id
 WHERE v.version_id = :version_id;

-- name: update_version!
-- Fold one event of a version: a NULL keeps what is there.
UPDATE read.version SET
  status = :status, stage = :stage, position = :position, live = :live, pending = NULL,
  verdict = coalesce(:verdict, verdict), language = coalesce(:language, language),
  title = CASE WHEN :erased THEN name ELSE coalesce(:title, title) END,
  parser = coalesce(:parser, parser),
  converter = coalesce(:converter, converter), embedder = coalesce(:embedder, embedder),
  parsed_sha256 = coalesce(:parsed_sha256, parsed_sha256),
  body_sha256 = coalesce(:body_sha256, body_sha256), meta_sha256 = coalesce(:meta_sha256, meta_sha256),
  chunks_sha256 = coalesce(:chunks_sha256, chunks_sha256),
  body_bytes = coalesce(:body_bytes, body_bytes), chunk_count = coalesce(:chunk_count, chunk_count),
  error = coalesce(:error, error)
WHERE version_id = :version_id;

-- name: forget_names!
-- Words of people leave a version that a person had erased, and its jobs, as they leave the log
-- (log.redacted): a replay, before or after that, comes to the same.
WITH gone AS (
  UPDATE read.version SET name = '(erased)', title = '(erased)', source_key = '',
    attachments = NULL, error = error || '{"reason": "(erased)"}'
   WHERE version_id = :version_id
)
UPDATE read.job SET name = '(erased)', error = error || '{"reason": "(erased)"}'
 WHERE version_id = :version_id;

-- name: update_job!
UPDATE read.job SET status = :status, stage = :stage, updated_at = :at,
  chunk_count = coalesce(:chunk_count, chunk_count), error = coalesce(:error, error)
WHERE job_id = :job_id;

-- name: update_pending!
-- A further attempt at a version that is in the index came one step on.
UPDATE read.version SET status = :status, position = :position, pending = :pending,
  error = coalesce(:error, error)
WHERE version_id = :version_id;

-- name: note_error!
-- A side step failed after the version was indexed: it stays indexed, the error is shown.
UPDATE read.version SET error = :error, position = :position WHERE version_id = :version_id;

-- name: note_attachments!
UPDATE read.version SET attachments = :attachments, position = :position
WHERE version_id = :version_id;

-- name: first_window!
-- The first version of a document that is indexed is valid from its own date on.
INSERT INTO read.validity (version_id, document_id, project, valid_from, recorded_from)
SELECT version_id, document_id, project, valid_from, :at FROM read.version
 WHERE version_id = :version_id
   AND NOT EXISTS (SELECT FROM read.validity w WHERE w.document_id = :document_id);

-- name: hand_over!
-- Another job than the newest, which was cancelled, goes on with the version.
UPDATE read.version SET job_id = :job_id WHERE version_id = :version_id;

-- name: hold_windows!
-- The windows of a version are held back: nobody sees it at any time, and they return with it.
UPDATE read.version v SET held = coalesce(
  (SELECT jsonb_agg(jsonb_build_object('from', w.valid_from, 'until', w.valid_until)
                    ORDER BY w.valid_from)
     FROM read.validity w WHERE w.version_id = v.version_id), '[]')
 WHERE v.version_id = :version_id;

-- name: return_windows!
-- A version is in the index again: its windows are back.
WITH back AS (
  INSERT INTO read.validity (version_id, document_id, project, valid_from, valid_until, recorded_from)
  SELECT v.version_id, v.document_id, v.project, (w ->> 'from')::timestamptz,
         (w ->> 'until')::timestamptz, :at
    FROM read.version v CROSS JOIN LATERAL jsonb_array_elements(v.held) AS w
   WHERE v.version_id = :version_id
)
UPDATE read.version SET held = NULL WHERE version_id = :version_id;

-- name: drop_held!
UPDATE read.version SET held = NULL WHERE version_id = :version_id;

-- name: end_version_windows!
-- From now on no window of the version is said.
WITH gone AS (
  DELETE FROM read.validity WHERE version_id = :version_id RETURNING *
)
INSERT INTO read.validity_past
SELECT version_id, document_id, project, valid_from, valid_until, recorded_from, :at
  FROM gone WHERE recorded_from < :at
ON CONFLICT (version_id, valid_from, recorded_from)
DO UPDATE SET valid_until = excluded.valid_until, recorded_until = excluded.recorded_until;

-- name: rewrite_held!
-- The held windows of a document's versions, as its new line has them.
UPDATE read.version v SET held = coalesce(
  (SELECT jsonb_agg(jsonb_build_object('from', w.f, 'until', w.u) ORDER BY w.f)
     FROM unnest(:version_ids::text[], :froms::timestamptz[], :untils::timestamptz[]) AS w(v, f, u)
    WHERE w.v = v.version_id), '[]')
 WHERE v.document_id = :document_id AND v.held IS NOT NULL;

-- name: end_windows!
-- Windows of a document that its new line does not have, or that are held, are not said any more.
WITH gone AS (
  DELETE FROM read.validity o WHERE o.document_id = :document_id AND NOT EXISTS (
    SELECT FROM unnest(:version_ids::text[], :froms::timestamptz[], :untils::timestamptz[]) AS w(v, f, u)
     WHERE w.v = o.version_id AND w.f = o.valid_from AND w.u IS NOT DISTINCT FROM o.valid_until
       AND NOT EXISTS (SELECT FROM read.version h WHERE h.version_id = w.v AND h.held IS NOT NULL))
  RETURNING *
)
INSERT INTO read.validity_past
SELECT version_id, document_id, project, valid_from, valid_until, recorded_from, :at
  FROM gone WHERE recorded_from < :at
ON CONFLICT (version_id, valid_from, recorded_from)
DO UPDATE SET valid_until = excluded.valid_until, recorded_until = excluded.recorded_until;

-- name: add_windows!
-- Windows of the new line that were not said before, but for those that are held.
INSERT INTO read.validity (version_id, document_id, project, valid_from, valid_until, recorded_from)
SELECT v, :document_id, :project, f, u, :at
  FROM unnest(:version_ids::text[], :froms::timestamptz[], :untils::timestamptz[]) AS w(v, f, u)
 WHERE NOT EXISTS (SELECT FROM read.validity o WHERE o.version_id = w.v AND o.valid_from = w.f)
   AND NOT EXISTS (SELECT FROM read.version h WHERE h.version_id = w.v AND h.held IS NOT NULL);

-- name: move_line!
-- The vectors of the document are behind its line until the indexer says that they are not.
INSERT INTO read.line AS l (document_id, project, position) VALUES (:document_id, :project, :position)
ON CONFLICT (document_id) DO UPDATE SET position = greatest(l.position, excluded.position);

-- name: clear_versions!
-- Not TRUNCATE: the role has no right to it, and it would shut readers out. `read.line` stays: what
-- the vectors know is not told by the log.
WITH v AS (DELETE FROM read.version), w AS (DELETE FROM read.validity),
     p AS (DELETE FROM read.validity_past)
DELETE FROM read.job;
