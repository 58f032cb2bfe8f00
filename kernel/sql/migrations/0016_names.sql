-- Names of erased versions leave the read projection, as they leave the log.

CREATE INDEX job_version ON read.job (version_id);     -- all attempts at a version

UPDATE read.version SET name = '(erased)', title = '(erased)', source_key = '', attachments = NULL,
  error = CASE WHEN error ->> 'code' LIKE 'parent-%' THEN error
               ELSE error || '{"reason": "(erased)"}' END
 WHERE status = 'erased';
UPDATE read.job j SET name = '(erased)',
  error = CASE WHEN j.error ->> 'code' LIKE 'parent-%' THEN j.error
               ELSE j.error || '{"reason": "(erased)"}' END
  FROM read.version v WHERE v.version_id = j.version_id AND v.status = 'erased';
