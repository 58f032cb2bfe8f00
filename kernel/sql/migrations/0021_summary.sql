-- The summary of a version's body: a blob, as the body is. Versions that were indexed before get one
-- by the next rebuild of the index.
ALTER TABLE read.version ADD COLUMN summary_sha256 text;
