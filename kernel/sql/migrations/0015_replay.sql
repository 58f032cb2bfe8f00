-- concurrently
-- What a replay with a filter reads: the events of a type, or of a project, by position.
DROP INDEX CONCURRENTLY IF EXISTS log.event_type;
CREATE INDEX CONCURRENTLY event_type ON log.event (type, position) INCLUDE (project);
DROP INDEX CONCURRENTLY IF EXISTS log.event_project;
CREATE INDEX CONCURRENTLY event_project ON log.event (project, position);
