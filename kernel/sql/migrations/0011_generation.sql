-- Generations of a project's index: the one before the live one is kept, and each says what it holds.

-- standby: complete when it was left; kept so that `rollback` can bring it back. At most one.
ALTER TABLE read.generation DROP CONSTRAINT generation_state_check;
ALTER TABLE read.generation ADD CONSTRAINT generation_state_check
  CHECK (state IN ('building', 'live', 'standby', 'retired'));
ALTER TABLE read.generation
  ADD COLUMN chunker text,                              -- NULL: it was begun before this migration
  ADD COLUMN since timestamptz NOT NULL DEFAULT now();  -- when it came into its state
CREATE UNIQUE INDEX generation_standby ON read.generation (project) WHERE state = 'standby';

-- Which cut of a version a generation holds, and which line of the document its vectors know.
CREATE TABLE read.placed (
  project       text   NOT NULL,
  generation    int    NOT NULL,
  version_id    text   NOT NULL,
  document_id   text   NOT NULL,
  chunks_sha256 text   NOT NULL,             -- '': nobody knows, so it differs from any
  passages      int    NOT NULL,
  windows_at    bigint NOT NULL DEFAULT 0,   -- position of the event that set the windows; 0: none
  PRIMARY KEY (project, generation, version_id),
  FOREIGN KEY (project, generation) REFERENCES read.generation ON DELETE CASCADE
);
CREATE INDEX placed_document ON read.placed (document_id);
INSERT INTO read.placed (project, generation, version_id, document_id, chunks_sha256, passages,
                         windows_at)
SELECT project, generation, version_id, min(document_id), '', count(*), -1
  FROM read.chunk JOIN read.generation USING (project, generation)
 GROUP BY project, generation, version_id;

GRANT SELECT, INSERT, UPDATE, DELETE ON read.placed TO kb_indexer;
