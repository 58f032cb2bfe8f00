-- Re-scans of history: stored texts judged by other rules.

-- The receipts of a project in order: what a re-scan goes through.
CREATE INDEX event_receipts ON log.event (project, position) WHERE type = 'DocumentReceived';
-- Which re-scans are open? Few rows are here.
CREATE INDEX event_rescans ON log.event (position)
  WHERE type IN ('RescanStarted', 'RescanFinished');
-- What did a re-scan find?
CREATE INDEX event_rescan_hits ON log.event ((data ->> 'rescan'), position)
  WHERE type = 'ScanVerdict' AND data ->> 'rescan' IS NOT NULL;

-- Windows of a version that is out of the index until a person decides; they return with it.
ALTER TABLE read.version ADD COLUMN held jsonb;
