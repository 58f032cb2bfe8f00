-- name: append^
-- Append events to one stream through the only door.
SELECT status, last_version, last_position
  FROM log.append(:stream_id, :expected, :events, :job::uuid);

-- name: head$
-- Position of the newest event.
SELECT position FROM log.head;

-- name: read
-- Events after a position, in order.
SELECT * FROM log.event WHERE position > :after ORDER BY position LIMIT :limit;

-- name: stream
-- All events of one stream, oldest first.
SELECT * FROM log.event WHERE stream_id = :stream_id ORDER BY version;

-- name: streams
-- All events of several streams, in log order.
SELECT * FROM log.event WHERE stream_id = ANY(:stream_ids::text[]) ORDER BY position;

-- name: job^
-- The receipt that began a job.
SELECT * FROM log.event
 WHERE correlation_id = :correlation_id AND type = 'DocumentReceived' ORDER BY position LIMIT 1;

-- name: known$
-- Is this event in the log?
SELECT EXISTS (SELECT FROM log.event WHERE event_id = :event_id);

-- name: standing^
-- Is a reaction in the log, and is the job of its cause cancelled?
SELECT EXISTS (SELECT FROM log.event WHERE event_id = :event_id) AS known,
       EXISTS (SELECT FROM log.event WHERE correlation_id = :job
                  AND type = 'Failed' AND data ->> 'code' = 'cancelled') AS over;

-- name: attached
-- All receipts of what is attached to these versions, oldest first.
SELECT * FROM log.event
 WHERE type = 'DocumentReceived' AND data ->> 'parent' = ANY(:version_ids::text[])
 ORDER BY position;

-- name: users
-- Versions that use a blob: as their bytes, as a scanned text, or as its meta.
SELECT data ->> 'document_id' AS document_id, data ->> 'version_id' AS version_id FROM log.event
 WHERE type = 'DocumentReceived' AND data ->> 'source_id' = :name
UNION
SELECT data ->> 'document_id', data ->> 'version_id' FROM log.event
 WHERE type IN ('ScanVerdict', 'Released') AND data ->> 'text_sha256' = :name
UNION
SELECT data ->> 'document_id', data ->> 'version_id' FROM log.event
 WHERE type = 'ScanVerdict' AND data ->> 'meta_sha256' = :name;

-- name: receipts
-- All receipts of source bytes, in any project or document, oldest first.
SELECT * FROM log.event
 WHERE type = 'DocumentReceived' AND data ->> 'source_id' = :source_id
 ORDER BY position;

-- name: event^
-- One event by its id.
SELECT * FROM log.event WHERE event_id = :event_id;

-- name: received^
-- The newest receipt of a version.
SELECT * FROM log.event
 WHERE stream_id = :stream_id AND type = 'DocumentReceived' AND data ->> 'version_id' = :version_id
 ORDER BY version DESC LIMIT 1;

-- name: identity_key$
-- Key of the id HMAC.
SELECT key FROM log.identity;

-- name: count_failure$
-- One more failed attempt of a consumer at an event; returns how many there were.
INSERT INTO log.failure AS f (consumer, event_id, position, stream_id, error_type, error, state)
VALUES (:consumer, :event_id, :position, :stream_id, :error_type, :error, 'retrying')
ON CONFLICT (consumer, event_id) DO UPDATE
  SET attempts = f.attempts + 1, error_type = excluded.error_type, error = excluded.error,
      state = 'retrying', last_at = now()
RETURNING attempts;

-- name: settle_failure!
-- An event that failed before is done, or dead.
UPDATE log.failure SET state = :state, last_at = now() WHERE consumer = :consumer AND event_id = :event_id;

-- name: documents
-- Documents of a project with a receipt that no erasure followed.
SELECT DISTINCT r.data ->> 'document_id' AS document_id FROM log.event r
 WHERE r.type = 'DocumentReceived' AND r.project = :project
   AND NOT EXISTS (
     SELECT FROM log.event e
      WHERE e.stream_id = r.stream_id AND e.type = 'Erased' AND e.position > r.position
        AND e.data ->> 'version_id' = r.data ->> 'version_id')
 ORDER BY 1;

-- name: document_of$
-- The document that a source key names in a project: the first one that was received under it.
SELECT data ->> 'document_id' FROM log.event
 WHERE type = 'DocumentReceived' AND project = :project
   AND hashtextextended(data ->> 'source_key', 0) = hashtextextended(:source_key, 0)
   AND data ->> 'source_key' = :source_key
 ORDER BY position LIMIT 1;

-- name: redact$
-- Words of a version that was erased leave the log.
SELECT log.redact(:document_id, :version_id);

-- name: tombstones
-- What requests had erased, in log order.
SELECT * FROM log.event
 WHERE type = 'Erased' AND correlation_id = ANY(:correlation_ids::uuid[]) ORDER BY position;

-- name: redacted
-- Events of streams that lost something to an erasure.
SELECT position FROM log.event
 WHERE stream_id = ANY(:streams::text[]) AND redacted_at IS NOT NULL ORDER BY position;

-- name: scrubbed^
-- Up to which position the files are clean.
SELECT position, at FROM log.scrub;
