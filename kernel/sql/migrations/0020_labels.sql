-- What a version was classified as, for filters: `tag:…`, `class:…`; null: nothing. It is folded from
-- the log like the rest of the row. Versions without labels cost the index nothing.
ALTER TABLE read.version ADD COLUMN labels text[];
CREATE INDEX version_labels ON read.version USING gin (labels) WHERE labels IS NOT NULL;
