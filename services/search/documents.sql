-- Documents as they are, or as they were at :moment by what was known at :known (NULL: now).

-- name: version
-- Versions that an id names: a version, a document (all its versions), or bytes.
SELECT v.*, coalesce(
         (SELECT jsonb_agg(jsonb_build_object('version_id', w.version_id, 'valid_from', w.valid_from,
                                              'valid_until', w.valid_until) ORDER BY w.valid_from)
            FROM read.known w
           WHERE w.version_id = v.version_id
             AND (:known::timestamptz IS NULL AND w.current
                  OR w.recorded_from <= :known AND (w.current OR w.recorded_until > :known)
                     AND EXISTS (SELECT FROM read.validity n WHERE n.version_id = v.version_id))),
         '[]') AS windows
  FROM read.version v
 WHERE v.document_id IN (
   SELECT document_id FROM read.version
    WHERE version_id = :id OR document_id = :id OR source_id = :id)
 ORDER BY v.received_at, v.version_id;

-- name: listing
-- A page of versions, newest first. What is known at a time and gone by now is not listed.
SELECT v.*, coalesce(
         (SELECT jsonb_agg(jsonb_build_object('version_id', w.version_id, 'valid_from', w.valid_from,
                                              'valid_until', w.valid_until) ORDER BY w.valid_from)
            FROM read.known w
           WHERE w.version_id = v.version_id
             AND (:known::timestamptz IS NULL AND w.current
                  OR w.recorded_from <= :known AND (w.current OR w.recorded_until > :known))),
         '[]') AS windows
  FROM read.version v
 WHERE (:project::text IS NULL OR v.project = :project)
   AND (:status::text IS NULL OR v.status = :status)
   AND (:trusted::boolean IS NULL OR v.trusted = :trusted)
   AND (:source::text IS NULL OR v.source_key = :source OR v.name = :source)
   AND (:moment::timestamptz IS NULL OR EXISTS (
         SELECT FROM read.known w
          WHERE w.version_id = v.version_id
            AND (:known IS NULL AND w.current
                 OR w.recorded_from <= :known AND (w.current OR w.recorded_until > :known)
                    AND EXISTS (SELECT FROM read.validity n WHERE n.version_id = v.version_id))
            AND w.valid_from <= :moment AND (w.valid_until IS NULL OR w.valid_until > :moment)))
   AND (:before::timestamptz IS NULL OR (v.received_at, v.version_id) < (:before, :before_id::text))
 ORDER BY v.received_at DESC, v.version_id DESC LIMIT :limit;

-- name: count_listing$
-- How many versions such a list has, counted up to a limit.
SELECT count(*) FROM (
  SELECT FROM read.version v
   WHERE (:project::text IS NULL OR v.project = :project)
     AND (:status::text IS NULL OR v.status = :status)
     AND (:trusted::boolean IS NULL OR v.trusted = :trusted)
     AND (:source::text IS NULL OR v.source_key = :source OR v.name = :source)
     AND (:moment::timestamptz IS NULL OR EXISTS (
           SELECT FROM read.known w
            WHERE w.version_id = v.version_id
              AND (:known::timestamptz IS NULL AND w.current
                   OR w.recorded_from <= :known AND (w.current OR w.recorded_until > :known)
                      AND EXISTS (SELECT FROM read.validity n WHERE n.version_id = v.version_id))
              AND w.valid_from <= :moment AND (w.valid_until IS NULL OR w.valid_until > :moment)))
   LIMIT :limit) counted;

-- name: summary_of$
-- The blob with the summary of a version's body.
SELECT summary_sha256 FROM read.version WHERE version_id = :version_id;

-- name: meta_of$
-- The blob with what the body of a version says of itself.
SELECT meta_sha256 FROM read.version WHERE version_id = :version_id;
