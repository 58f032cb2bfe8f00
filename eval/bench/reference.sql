-- The log as EVENTS.md gives it, alone: what ours is measured against.
CREATE SCHEMA es;
CREATE TABLE es.head (                                   -- gap-free counter, one row, HOT updates
  one boolean PRIMARY KEY DEFAULT true CHECK (one), position bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
INSERT INTO es.head DEFAULT VALUES;

CREATE TABLE es.event (
  position       bigint PRIMARY KEY,                     -- == JetStream sequence
  stream_id      text NOT NULL,
  version        int  NOT NULL,
  event_id       uuid NOT NULL UNIQUE,                   -- deterministic for reactions (§9)
  category       text NOT NULL GENERATED ALWAYS AS (split_part(stream_id, '-', 1)) STORED,
  type           text NOT NULL,                          -- 'docver.scanned'
  schema_version smallint NOT NULL,
  lane           text NOT NULL DEFAULT 'live',           -- live | bulk
  project_id     text NOT NULL,
  causation_id   uuid, correlation_id uuid NOT NULL,
  actor          text NOT NULL,                          -- 'svc:scanner' | 'actor:<uuid>' (pseudonym)
  traceparent    text,
  occurred_at    timestamptz NOT NULL,
  recorded_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  data           jsonb NOT NULL,
  sealed         bytea, key_id uuid,                     -- AES-GCM of personal fields (§14)
  redacted_at    timestamptz,
  UNIQUE (stream_id, version)                            -- optimistic concurrency, last line of defence
);
CREATE INDEX event_category ON es.event (category, position);
CREATE INDEX event_project  ON es.event (project_id, position);
CREATE INDEX event_cause    ON es.event (causation_id) WHERE causation_id IS NOT NULL;
CREATE INDEX event_key      ON es.event (key_id)       WHERE key_id IS NOT NULL;

CREATE FUNCTION es.guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND current_setting('es.redact', true) = 'on'
     AND (NEW.position, NEW.stream_id, NEW.version, NEW.event_id, NEW.type, NEW.schema_version, NEW.recorded_at)
       = (OLD.position, OLD.stream_id, OLD.version, OLD.event_id, OLD.type, OLD.schema_version, OLD.recorded_at)
  THEN RETURN NEW; END IF;
  RAISE EXCEPTION 'es.event is append-only (%)', TG_OP USING ERRCODE = 'ES003';
END $$;
CREATE TRIGGER guard_row  BEFORE UPDATE OR DELETE ON es.event FOR EACH ROW       EXECUTE FUNCTION es.guard();
CREATE TRIGGER guard_trnc BEFORE TRUNCATE         ON es.event FOR EACH STATEMENT EXECUTE FUNCTION es.guard();

CREATE FUNCTION es.append(p_stream text, p_expected int, p_events jsonb,   -- -1 any, 0 new, n exact
                          OUT status text, OUT last_version int, OUT last_position bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = es, pg_temp AS $$
DECLARE n int := jsonb_array_length(p_events); cur int; seen int; foreign_ids int;
BEGIN
  IF n = 0 THEN RAISE EXCEPTION 'empty append' USING ERRCODE = 'ES004'; END IF;
  PERFORM pg_advisory_xact_lock(4201);                   -- FIFO, held until commit is visible
  SELECT count(*) FILTER (WHERE e.stream_id =  p_stream), count(*) FILTER (WHERE e.stream_id <> p_stream),
         max(e.version), max(e.position) INTO seen, foreign_ids, last_version, last_position
    FROM es.event e
   WHERE e.event_id = ANY (SELECT (x->>'event_id')::uuid FROM jsonb_array_elements(p_events) x);
  IF foreign_ids > 0 OR (seen > 0 AND seen < n) THEN
    RAISE EXCEPTION 'event ids partly known on %', p_stream USING ERRCODE = 'ES002'; END IF;
  IF seen = n THEN status := 'duplicate'; RETURN; END IF;
  SELECT coalesce(max(e.version), 0) INTO cur FROM es.event e WHERE e.stream_id = p_stream;
  IF p_expected >= 0 AND cur <> p_expected THEN
    RAISE EXCEPTION 'expected version % of % but it is %', p_expected, p_stream, cur USING ERRCODE = 'ES001';
  END IF;
  UPDATE es.head SET position = position + n RETURNING position INTO last_position;
  INSERT INTO es.event (position, stream_id, version, event_id, type, schema_version, lane, project_id,
                        causation_id, correlation_id, actor, traceparent, occurred_at, data, sealed, key_id)
  SELECT last_position - n + o, p_stream, cur + o, (x->>'event_id')::uuid, x->>'type',
         (x->>'schema_version')::smallint, coalesce(x->>'lane','live'), x->>'project_id',
         (x->>'causation_id')::uuid, (x->>'correlation_id')::uuid, x->>'actor', x->>'traceparent',
         (x->>'occurred_at')::timestamptz, x->'data', decode(x->>'sealed','base64'), (x->>'key_id')::uuid
    FROM jsonb_array_elements(p_events) WITH ORDINALITY t(x, o);
  last_version := cur + n; status := 'appended';
  PERFORM pg_notify('es_head', last_position::text);
END $$;
