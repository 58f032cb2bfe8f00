-- Which projects did a person make, or delete? Few rows are here.
CREATE INDEX event_projects ON log.event (project, position DESC)
  WHERE type IN ('ProjectCreated', 'ProjectDeleted');
