-- Jobs that can be cancelled, and files inside files.

-- "Is this job cancelled?" is asked with every delivery and every reaction; few rows are here.
CREATE INDEX event_cancelled ON log.event (correlation_id)
  WHERE type = 'Failed' AND data ->> 'code' = 'cancelled';
-- Which documents were attached to a version?
CREATE INDEX event_parent ON log.event ((data ->> 'parent'))
  WHERE type = 'DocumentReceived' AND data ->> 'parent' IS NOT NULL;
-- Who else has this meta blob? An erasure must leave it to them.
CREATE INDEX event_meta ON log.event ((data ->> 'meta_sha256'))
  WHERE type = 'ScanVerdict' AND data ->> 'meta_sha256' IS NOT NULL;

-- As before, and:
--   p_job: nothing is appended, and the status is 'over', when this job was cancelled. The check is
--   made under the lock of the append, so after a cancellation a job has no more events.
DROP FUNCTION log.append(text, int, jsonb);
CREATE FUNCTION log.append(
  p_stream text, p_expected int, p_events jsonb, p_job uuid DEFAULT NULL,
  OUT status text, OUT last_version int, OUT last_position bigint
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = log, pg_temp AS $$
DECLARE
  n int := jsonb_array_length(p_events);
  owned text[] := ARRAY(SELECT w.type FROM log.writer w WHERE w.role = session_user);
  ids uuid[]; cur int; seen int; elsewhere int; not_owned text;
BEGIN
  IF n = 0 THEN RAISE EXCEPTION 'empty append' USING ERRCODE = 'KB004'; END IF;
  SELECT array_agg((x ->> 'event_id')::uuid), min(x ->> 'type') FILTER (WHERE x ->> 'type' <> ALL (owned))
    INTO ids, not_owned FROM jsonb_array_elements(p_events) x;
  IF not_owned IS NOT NULL THEN
    RAISE EXCEPTION '% may not append %', session_user, not_owned USING ERRCODE = 'KB005';
  END IF;
  PERFORM pg_advisory_xact_lock(4201);   -- fair, and held until the commit is visible
  SELECT count(*) FILTER (WHERE e.stream_id = p_stream),
         count(*) FILTER (WHERE e.stream_id <> p_stream),
         max(e.version), max(e.position)
    INTO seen, elsewhere, last_version, last_position
    FROM log.event e WHERE e.event_id = ANY (ids);
  IF elsewhere > 0 OR (seen > 0 AND seen < n) THEN
    RAISE EXCEPTION 'event ids partly known on %', p_stream USING ERRCODE = 'KB002';
  END IF;
  IF seen = n THEN status := 'duplicate'; RETURN; END IF;
  IF p_job IS NOT NULL AND EXISTS (
    SELECT FROM log.event e WHERE e.correlation_id = p_job
       AND e.type = 'Failed' AND e.data ->> 'code' = 'cancelled') THEN
    status := 'over'; last_version := 0; last_position := 0; RETURN;
  END IF;
  SELECT e.version INTO cur FROM log.event e WHERE e.stream_id = p_stream
   ORDER BY e.version DESC LIMIT 1;
  cur := coalesce(cur, 0);
  IF p_expected >= 0 AND cur <> p_expected THEN
    RAISE EXCEPTION 'expected version % of % but it is %', p_expected, p_stream, cur
      USING ERRCODE = 'KB001';
  END IF;
  UPDATE log.head SET position = position + n RETURNING position INTO last_position;
  INSERT INTO log.event (position, stream_id, version, event_id, type, schema_version, lane, project,
                         causation_id, correlation_id, actor, traceparent, occurred_at, data)
  SELECT last_position - n + o, p_stream, cur + o, x.event_id, x.type, x.schema_version, x.lane,
         x.project, x.causation_id, x.correlation_id, x.actor, x.traceparent, x.occurred_at, x.data
    FROM ROWS FROM (jsonb_to_recordset(p_events) AS (
           event_id uuid, type text, schema_version smallint, lane text, project text,
           causation_id uuid, correlation_id uuid, actor text, traceparent text,
           occurred_at timestamptz, data jsonb)) WITH ORDINALITY
      AS x (event_id, type, schema_version, lane, project, causation_id, correlation_id, actor,
            traceparent, occurred_at, data, o);
  last_version := cur + n;
  status := 'appended';
  PERFORM pg_notify('log_head', last_position::text);   -- a hint; the poll is the truth
END $$;
REVOKE ALL ON FUNCTION log.append(text, int, jsonb, uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION log.append(text, int, jsonb, uuid)
  TO kb_ingest, kb_converter, kb_scanner, kb_indexer;

-- live: the version is in the index, whatever a later attempt at it does. pending: what that
-- attempt found so far; it counts when the attempt is indexed. attachments: AttachmentsReceived.
ALTER TABLE read.version
  ADD COLUMN parent text,
  ADD COLUMN live boolean NOT NULL DEFAULT false,
  ADD COLUMN pending jsonb,
  ADD COLUMN attachments jsonb;
UPDATE read.version SET live = status = 'indexed';
CREATE INDEX version_parent ON read.version (parent) WHERE parent IS NOT NULL;
ALTER TABLE read.job ADD COLUMN attempt int NOT NULL DEFAULT 1;
UPDATE read.job j SET attempt = (e.data ->> 'attempt')::int
  FROM log.event e WHERE e.correlation_id = j.job_id AND e.type = 'DocumentReceived';
