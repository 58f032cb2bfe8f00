-- The log: the only truth. One table, one function to append, nobody may update or delete.
CREATE SCHEMA log;

-- Gap-free counter, one row. The advisory lock in log.append serialises its update, so positions
-- become visible in order (a sequence would let a reader skip an event that commits late).
CREATE TABLE log.head (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  position bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
INSERT INTO log.head DEFAULT VALUES;

CREATE TABLE log.event (
  position       bigint PRIMARY KEY,                -- equals the JetStream sequence
  stream_id      text NOT NULL,
  version        int  NOT NULL,
  event_id       uuid NOT NULL UNIQUE,              -- deterministic for reactions: the log is the inbox
  type           text NOT NULL,
  schema_version smallint NOT NULL,
  lane           text NOT NULL CHECK (lane IN ('live', 'bulk')),
  project        text NOT NULL,
  causation_id   uuid,
  correlation_id uuid NOT NULL,
  actor          text NOT NULL,                     -- 'svc:scanner', or an opaque person id
  traceparent    text,
  occurred_at    timestamptz NOT NULL,
  recorded_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  data           jsonb NOT NULL,
  UNIQUE (stream_id, version)                       -- optimistic concurrency, last line of defence
);
CREATE INDEX event_job ON log.event (correlation_id)                   -- which receipt began a job?
  WHERE type = 'DocumentReceived';
CREATE INDEX event_verdict ON log.event ((data ->> 'text_sha256'))     -- "is this text cleared?"
  WHERE type IN ('ScanVerdict', 'Released');
CREATE INDEX event_source ON log.event ((data ->> 'source_id')) WHERE type = 'DocumentReceived';

CREATE FUNCTION log.guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'log.event is append-only (%)', TG_OP USING ERRCODE = 'KB003';
END $$;
CREATE TRIGGER guard_row BEFORE UPDATE OR DELETE ON log.event
  FOR EACH ROW EXECUTE FUNCTION log.guard();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON log.event
  FOR EACH STATEMENT EXECUTE FUNCTION log.guard();

-- Which role may write which event type: the flow table, held against it by a test.
CREATE TABLE log.writer (
  role text NOT NULL,
  type text NOT NULL,
  PRIMARY KEY (role, type)
);

-- Append events to one stream.
--   p_expected: -1 any version, 0 a new stream, n exactly version n.
--   status: 'appended', or 'duplicate' when all event ids are in this stream already.
--   Raises KB001 wrong version, KB002 ids partly known or known elsewhere, KB004 nothing to append,
--   KB005 the calling role does not own the event type.
CREATE FUNCTION log.append(
  p_stream text, p_expected int, p_events jsonb,
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

-- Deliveries that raised: attempts are counted here, since JetStream also counts crashes.
CREATE TABLE log.failure (
  consumer   text NOT NULL,
  event_id   text NOT NULL,
  position   bigint,
  stream_id  text,
  attempts   int NOT NULL DEFAULT 1,
  error_type text NOT NULL,
  error      text NOT NULL,
  state      text NOT NULL CHECK (state IN ('retrying', 'dead', 'resolved')),
  first_at   timestamptz NOT NULL DEFAULT now(),
  last_at    timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (consumer, event_id)
);

-- Where each projection of the log is; moved in the transaction of its own writes.
CREATE TABLE log.projection (
  name     text PRIMARY KEY,
  position bigint NOT NULL DEFAULT 0,
  updated_at timestamptz NOT NULL DEFAULT now()
);

-- Key of the HMAC that makes ids of documents and versions, so that an id does not tell whether
-- a given file is (or was) here.
CREATE TABLE log.identity (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  key bytea NOT NULL DEFAULT uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
);
INSERT INTO log.identity DEFAULT VALUES;
