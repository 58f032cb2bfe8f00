-- name: opening
-- Of each project: the generation that a question reads, its model, and whether vectors are behind
-- the line of a document; with it where the projection is. Of those in `deep` also the versions
-- that are valid at :moment, at most :limit, by the index validity_instant. One snapshot.
SELECT p.project, a.generation, g.embedder,
       coalesce((SELECT position FROM log.projection WHERE name = 'read'), 0) AS position,
       EXISTS (SELECT FROM read.line l
                WHERE l.project = p.project AND l.settled < l.position) AS unsettled,
       CASE WHEN p.project = ANY (:deep::text[]) THEN ARRAY(
         SELECT v.version_id FROM read.validity v
          WHERE read.span(v.project, v.valid_from, v.valid_until)
                @> read.instant(p.project, :moment::timestamptz)
            AND v.project = p.project AND v.valid_from <= :moment
            AND (v.valid_until IS NULL OR v.valid_until > :moment)
          LIMIT :limit) END AS valid
  FROM unnest(:projects::text[]) AS p(project)
  LEFT JOIN read.active a USING (project)
  LEFT JOIN read.generation g USING (project, generation);

-- name: passages
-- Candidates that are valid at :moment (any time, when it is NULL), with the window that makes them
-- so: the newest one, of those that begin within the asked dates. This is the last word on validity;
-- the vector payload may lag. `known`: by what was said then, and only of versions that are still
-- there.
SELECT c.point_id, c.version_id, c.chunk_id, c.document_id, c.source_id, c.project, c.heading_path,
       c.byte_start, c.byte_end, c.title, c.text, c.language, w.valid_from, w.valid_until,
       w.recorded_from, w.recorded_until
  FROM unnest(:points::uuid[]) AS k(point_id)
  JOIN read.chunk c USING (point_id)
  CROSS JOIN LATERAL (
    SELECT valid_from, valid_until, recorded_from, recorded_until FROM read.known v
     WHERE v.version_id = c.version_id
       AND (:known::timestamptz IS NULL AND v.current
            OR v.recorded_from <= :known AND (v.current OR v.recorded_until > :known))
       AND (:moment::timestamptz IS NULL
            OR (v.valid_from <= :moment AND (v.valid_until IS NULL OR v.valid_until > :moment)))
       AND (:dated_from::timestamptz IS NULL OR v.valid_from >= :dated_from)
       AND (:dated_until::timestamptz IS NULL OR v.valid_from <= :dated_until)
     ORDER BY valid_from DESC LIMIT 1) w
 WHERE c.project || ' ' || c.generation = ANY (:bases::text[])
   AND (:known IS NULL OR EXISTS (SELECT FROM read.validity n WHERE n.version_id = c.version_id));

-- name: held_terms
-- Which of `terms` passages hold.
SELECT point_id, tsvector_to_array(ts_filter(setweight(terms, 'A', :terms::text[]), '{a}')) AS terms
  FROM read.chunk
 WHERE point_id = ANY (:points::uuid[]) AND project || ' ' || generation = ANY (:bases::text[]);

-- name: fitting
-- Versions of a project that pass the filters of a question and are valid at :moment by what was
-- known at :known, and still there. At most :limit. Windows are looked up for each version that passes
-- the rest: the planner, which knows nothing of read.known, would go through all windows.
SELECT v.version_id
  FROM read.version v
  CROSS JOIN LATERAL (
    SELECT bool_or(w.current) AS here,
           bool_or((:known::timestamptz IS NULL AND w.current
                    OR w.recorded_from <= :known AND (w.current OR w.recorded_until > :known))
                   AND (:dated_from::timestamptz IS NULL OR w.valid_from >= :dated_from)
                   AND (:dated_until::timestamptz IS NULL OR w.valid_from <= :dated_until)
                   AND (:moment::timestamptz IS NULL
                        OR w.valid_from <= :moment
                           AND (w.valid_until IS NULL OR w.valid_until > :moment))) AS fits
      FROM read.known w WHERE w.version_id = v.version_id) AS said
 WHERE v.project = :project
   AND (:media_types::text[] IS NULL OR v.media_type = ANY (:media_types))
   AND (:tags::text[] IS NULL OR v.labels @> :tags)
   AND (:classes::text[] IS NULL OR v.labels && :classes)
   AND (:received_from::timestamptz IS NULL OR v.received_at >= :received_from)
   AND (:received_until::timestamptz IS NULL OR v.received_at <= :received_until)
   AND said.fits AND (:known IS NULL OR said.here)
 LIMIT :limit;

-- name: sifted
-- Which of these versions pass the filters of a question and are valid, as `fitting`. Not `exact`:
-- what is valid may change before Postgres has its last word, so a version is kept whatever holds
-- at :moment.
SELECT v.version_id
  FROM read.version v
  CROSS JOIN LATERAL (
    SELECT bool_or(w.current) AS here,
           bool_or((:known::timestamptz IS NULL AND w.current
                    OR w.recorded_from <= :known AND (w.current OR w.recorded_until > :known))
                   AND (:dated_from::timestamptz IS NULL OR w.valid_from >= :dated_from)
                   AND (:dated_until::timestamptz IS NULL OR w.valid_from <= :dated_until)
                   AND (:moment::timestamptz IS NULL OR NOT :exact
                        OR w.valid_from <= :moment
                           AND (w.valid_until IS NULL OR w.valid_until > :moment))) AS fits
      FROM read.known w WHERE w.version_id = v.version_id) AS said
 WHERE v.version_id = ANY (:version_ids::text[])
   AND (:media_types::text[] IS NULL OR v.media_type = ANY (:media_types))
   AND (:tags::text[] IS NULL OR v.labels @> :tags)
   AND (:classes::text[] IS NULL OR v.labels && :classes)
   AND (:received_from::timestamptz IS NULL OR v.received_at >= :received_from)
   AND (:received_until::timestamptz IS NULL OR v.received_at <= :received_until)
   AND (said.fits OR NOT :exact AND said.here IS NOT TRUE) AND (:known IS NULL OR said.here);

-- name: exactly
-- Versions of documents of which the vectors cannot be asked what is valid: those whose line they
-- do not have yet, and those named. Each with the word of Postgres.
SELECT v.version_id, v.project, EXISTS (
         SELECT FROM read.known w
          WHERE w.version_id = v.version_id
            AND (:known::timestamptz IS NULL AND w.current
                 OR w.recorded_from <= :known AND (w.current OR w.recorded_until > :known))
            AND (:moment::timestamptz IS NULL
                 OR w.valid_from <= :moment AND (w.valid_until IS NULL OR w.valid_until > :moment))
       ) AS valid
  FROM read.version v
 WHERE v.document_id IN (
   SELECT l.document_id FROM read.line l
    WHERE l.project = ANY (:projects::text[]) AND l.settled < l.position
   UNION ALL SELECT unnest(:documents::text[]));

-- name: others
-- Versions of which perhaps something else is said now about :moment than was known at :known: what
-- holds then was said since, or is not said any more. At most :limit of each kind.
(SELECT version_id FROM read.validity v
  WHERE v.project = :project AND v.recorded_from > :known::timestamptz
    AND (:moment::timestamptz IS NULL
         OR v.valid_from <= :moment AND (v.valid_until IS NULL OR v.valid_until > :moment))
  LIMIT :limit)
UNION
(SELECT version_id FROM read.validity_past v
  WHERE v.project = :project AND v.recorded_until > :known AND v.recorded_from <= :known
    AND (:moment IS NULL
         OR v.valid_from <= :moment AND (v.valid_until IS NULL OR v.valid_until > :moment))
  LIMIT :limit);

-- name: judged
-- Of versions: valid at :moment by what was known at :known, and still there? valid now?
SELECT version_id,
       bool_or(w.holds AND w.recorded_from <= :known::timestamptz
               AND (w.current OR w.recorded_until > :known)) AND bool_or(w.current) AS valid,
       bool_or(w.holds AND w.current) AS now
  FROM unnest(:version_ids::text[]) AS named(version_id)
  JOIN LATERAL (
    SELECT k.version_id, k.recorded_from, k.recorded_until, k.current,
           :moment::timestamptz IS NULL
             OR k.valid_from <= :moment AND (k.valid_until IS NULL OR k.valid_until > :moment) AS holds
      FROM read.known k WHERE k.version_id = named.version_id) w USING (version_id)
 GROUP BY version_id;

-- name: known_versions
-- Versions that were valid at :moment by what was known at :known; some of them may be erased now.
SELECT v.version_id FROM read.known v
 WHERE v.project = :project AND v.recorded_from <= :known::timestamptz
   AND (v.current OR v.recorded_until > :known)
   AND (:moment::timestamptz IS NULL
        OR v.valid_from <= :moment AND (v.valid_until IS NULL OR v.valid_until > :moment))
 LIMIT :limit;

-- name: count_valid$
-- How many windows of a project hold at an instant; counted up to a limit.
SELECT count(*) FROM (
  SELECT FROM read.validity v
   WHERE read.span(v.project, v.valid_from, v.valid_until)
         @> read.instant(:project, :moment::timestamptz)
     AND v.project = :project AND v.valid_from <= :moment
     AND (v.valid_until IS NULL OR v.valid_until > :moment)
   LIMIT :limit) counted;

-- name: windows$
-- How many windows a project has, the past ones too; counted up to a limit.
SELECT count(*) FROM (SELECT FROM read.validity WHERE project = :project LIMIT :limit) counted;

-- name: refused_documents
-- Documents of candidates that Postgres refused, and whether a version of them took another's place.
SELECT DISTINCT v.document_id, l.document_id IS NOT NULL AS lined
  FROM read.version v LEFT JOIN read.line l USING (document_id)
 WHERE v.version_id = ANY (:version_ids::text[]);

-- name: attachments_of
-- The newest version of each document that was attached to one of these versions.
SELECT * FROM (
  SELECT DISTINCT ON (document_id) version_id, document_id, name, media_type, status, received_at
    FROM read.version WHERE parent = ANY(:version_ids::text[])
   ORDER BY document_id, received_at DESC, version_id) newest
 ORDER BY received_at, name, version_id;

-- name: relative^
SELECT version_id, document_id, name, media_type, status FROM read.version
 WHERE version_id = :version_id;

-- name: left_out$
-- What AttachmentsReceived said last about a version.
SELECT attachments FROM read.version WHERE version_id = :version_id;

-- name: judgements
-- Verdicts on versions, and receipts of documents, in order.
SELECT * FROM log.event
 WHERE stream_id = ANY(:streams::text[]) AND type IN ('ScanVerdict', 'DocumentReceived')
 ORDER BY position;

-- name: job^
SELECT * FROM read.job WHERE job_id = :job_id;

-- name: jobs
-- A page of jobs, newest first.
SELECT * FROM read.job
 WHERE (:project::text IS NULL OR project = :project)
   AND (:before::timestamptz IS NULL OR (started_at, job_id::text) < (:before, :before_id::text))
 ORDER BY started_at DESC, job_id DESC LIMIT :limit;

-- name: models_in_use
-- The models of the indexes that questions read.
SELECT DISTINCT g.embedder FROM read.active JOIN read.generation g USING (project, generation)
 ORDER BY g.embedder;
