-- concurrently
-- A document is known by what names it in the log, not by how its id was made: one that came from
-- another installation keeps its id, and its next version finds it. Which document has this source
-- key? A key may be longer than an index entry, so its hash stands in the index, and the query
-- compares the key as well.
DROP INDEX CONCURRENTLY IF EXISTS log.event_key;
CREATE INDEX CONCURRENTLY event_key ON log.event (project, hashtextextended(data ->> 'source_key', 0), position) WHERE type = 'DocumentReceived';
