-- Two times: when a version is valid, and when that was said. And no moment between two versions.

-- The line of a document's versions, once it has several. position: of the event that set it last.
-- settled: of the newest one that its vectors know. While that is less, they do not have the last
-- line yet, and a search says itself which versions of the document are valid.
CREATE TABLE read.line (
  document_id text PRIMARY KEY,
  project     text   NOT NULL,
  position    bigint NOT NULL,
  settled     bigint NOT NULL DEFAULT 0
);
INSERT INTO read.line
SELECT data ->> 'document_id', min(project), max(position), max(position)
  FROM log.event WHERE type IN ('Superseded', 'Reinstated') GROUP BY 1;
CREATE INDEX line_unsettled ON read.line (project) WHERE settled < position;

-- Windows that were said once and are not said any more: [recorded_from, recorded_until).
CREATE TABLE read.validity_past (
  version_id     text NOT NULL,
  document_id    text NOT NULL,
  project        text NOT NULL,
  valid_from     timestamptz NOT NULL,
  valid_until    timestamptz,
  recorded_from  timestamptz NOT NULL,
  recorded_until timestamptz NOT NULL CHECK (recorded_until > recorded_from),
  PRIMARY KEY (version_id, valid_from, recorded_from)
);
CREATE INDEX validity_past_document ON read.validity_past (document_id);
CREATE INDEX validity_past_recorded ON read.validity_past (project, recorded_until, recorded_from);

-- Since when a window is said. The default is for the release before this one, should it still
-- write; the projection is folded anew by the first one that knows better (revision).
ALTER TABLE read.validity ADD COLUMN recorded_from timestamptz NOT NULL DEFAULT now();
CREATE INDEX validity_recorded ON read.validity (project, recorded_from);
ALTER TABLE log.projection ADD COLUMN revision int NOT NULL DEFAULT 1;

-- All that was ever said of validity. `current`: it is said now.
CREATE VIEW read.known AS
SELECT version_id, document_id, project, valid_from, valid_until, recorded_from,
       NULL::timestamptz AS recorded_until, true AS current
  FROM read.validity
UNION ALL
SELECT version_id, document_id, project, valid_from, valid_until, recorded_from, recorded_until, false
  FROM read.validity_past;

GRANT SELECT, INSERT, UPDATE, DELETE ON read.line, read.validity_past TO kb_search;
GRANT SELECT ON read.known TO kb_search;
GRANT SELECT ON read.line TO kb_indexer;
GRANT UPDATE (settled) ON read.line TO kb_indexer;
