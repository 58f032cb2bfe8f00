-- name: digests
-- A hash of all rows of each projected table, in the order of their keys.
SELECT 'version' AS name, coalesce(md5(string_agg(v::text, E'\n' ORDER BY version_id)), '') AS digest
  FROM read.version v
UNION ALL
SELECT 'validity', coalesce(md5(string_agg(w::text, E'\n' ORDER BY version_id, valid_from)), '')
  FROM read.validity w
UNION ALL
SELECT 'validity_past', coalesce(md5(string_agg(
         p::text, E'\n' ORDER BY version_id, valid_from, recorded_from)), '')
  FROM read.validity_past p
UNION ALL
SELECT 'job', coalesce(md5(string_agg(j::text, E'\n' ORDER BY job_id)), '') FROM read.job j;
