-- The log is tamper-evident: each event carries a link of its stream's hash chain, and log.head a
-- fingerprint of all links. Anybody can check it with SHA-256 and the columns of log.event:
--
--   digest      = sha256(salt || data as jsonb prints it, in UTF-8)
--   chain       = sha256(chain of the stream's event before || digest || header, in UTF-8)
--   header      = JSON array of the other columns, as json_build_array prints it: ", " between the
--                 values, only what JSON demands escaped, null for none:
--                 [position, stream_id, version, event_id, type, schema_version, lane, project,
--                  causation_id, correlation_id, actor, traceparent, occurred_at, recorded_at]
--                 the two times as whole microseconds since 1970-01-01 in UTC
--   fingerprint = sha256(fingerprint before || chain), over all events by position
--
-- Before the first link, and before the first event, are 32 zero bytes. Nothing of it depends on the
-- settings of a session. Whoever owns the database can compute all of it anew: only a fingerprint
-- that was written down elsewhere shows that (kb verify --anchor).
--
-- An erasure replaces `data`, drops `salt` and sets `redacted_at`; the digest stays, and with it the
-- chain. Without the salt nobody can try what the data may have been.

-- Appends that wait from now on find the new function; no deadlock with one that is half-way.
SELECT pg_advisory_xact_lock(4201);
LOCK TABLE log.event, log.head IN ACCESS EXCLUSIVE MODE;

ALTER TABLE log.event
  ADD COLUMN salt        bytea,                     -- 16 random bytes, until it is redacted
  ADD COLUMN digest      bytea,
  ADD COLUMN chain       bytea,
  ADD COLUMN redacted_at timestamptz;
ALTER TABLE log.event ALTER COLUMN recorded_at DROP DEFAULT;   -- part of the header: log.append sets it
ALTER TABLE log.head
  ADD COLUMN fingerprint bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex'),
  ADD COLUMN recorded_at timestamptz NOT NULL DEFAULT '-infinity';   -- of the newest event

CREATE FUNCTION log.digest(salt bytea, data jsonb) RETURNS bytea LANGUAGE sql STABLE AS $$
  SELECT sha256(salt || convert_to(data::text, 'UTF8'))
$$;

CREATE FUNCTION log.header(e log.event) RETURNS bytea LANGUAGE sql STABLE AS $$
  SELECT convert_to(json_build_array(
    (e).position, (e).stream_id, (e).version, (e).event_id, (e).type, (e).schema_version, (e).lane,
    (e).project, (e).causation_id, (e).correlation_id, (e).actor, (e).traceparent,
    (extract(epoch FROM (e).occurred_at) * 1000000)::bigint,
    (extract(epoch FROM (e).recorded_at) * 1000000)::bigint)::text, 'UTF8')
$$;

-- log.linked(x ORDER BY …): sha256(what came before || x), from 32 zero bytes on.
CREATE FUNCTION log.linked_step(bytea, bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
  SELECT sha256($1 || $2)
$$;
CREATE AGGREGATE log.linked(bytea) (
  SFUNC = log.linked_step, STYPE = bytea,
  INITCOND = '\x0000000000000000000000000000000000000000000000000000000000000000'
);
REVOKE ALL ON FUNCTION log.digest(bytea, jsonb), log.header(log.event),
  log.linked_step(bytea, bytea), log.linked(bytea) FROM PUBLIC;

-- What is in the log already gets its links. This transaction alone sees the guard away.
ALTER TABLE log.event DISABLE TRIGGER guard_row;
UPDATE log.event t SET salt = l.salt, digest = l.digest, chain = l.chain
  FROM (
    SELECT position, salt, digest,
           log.linked(digest || header) OVER (PARTITION BY stream_id ORDER BY version) AS chain
      FROM (
        SELECT position, stream_id, version, salt, header, log.digest(salt, data) AS digest
          FROM (
            SELECT position, stream_id, version, data, log.header(e) AS header,
                   uuid_send(gen_random_uuid()) AS salt
              FROM log.event e
          ) salted
      ) digested
  ) l
 WHERE t.position = l.position;
ALTER TABLE log.event ENABLE TRIGGER guard_row;
UPDATE log.head SET
  fingerprint = (SELECT log.linked(chain ORDER BY position) FROM log.event),
  recorded_at = coalesce((SELECT max(recorded_at) FROM log.event), '-infinity');

ALTER TABLE log.event
  ALTER COLUMN digest SET NOT NULL,
  ALTER COLUMN chain SET NOT NULL,
  ADD CONSTRAINT event_links CHECK (length(digest) = 32 AND length(chain) = 32),
  ADD CONSTRAINT event_salted CHECK ((salt IS NULL) = (redacted_at IS NOT NULL));

-- An append that waited for this migration goes on in the old function, which knows no links: it is
-- told to try again (55P03, as when a lock is not to be had).
CREATE FUNCTION log.again() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the log was migrated meanwhile' USING ERRCODE = 'lock_not_available';
END $$;
REVOKE ALL ON FUNCTION log.again() FROM PUBLIC;
CREATE TRIGGER guard_insert BEFORE INSERT ON log.event
  FOR EACH ROW WHEN (NEW.chain IS NULL) EXECUTE FUNCTION log.again();

-- As before, and the events are linked: one by one, then inserted together. recorded_at never goes back, whatever the clock does: what
-- was recorded until some moment is all up to some position. Sequential scans are off: a plan that was
-- made while the table was small must not stay while it grows.
CREATE OR REPLACE FUNCTION log.append(
  p_stream text, p_expected int, p_events jsonb, p_job uuid DEFAULT NULL,
  OUT status text, OUT last_version int, OUT last_position bigint
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = log, pg_temp
  SET enable_seqscan = off AS $$
DECLARE
  n int := jsonb_array_length(p_events);
  owned text[] := ARRAY(SELECT w.type FROM log.writer w WHERE w.role = session_user);
  ids uuid[]; cur int; seen int; elsewhere int; not_owned text;
  link bytea; seal bytea; at timestamptz; e log.event; linked log.event[];
BEGIN
  IF n = 0 THEN RAISE EXCEPTION 'empty append' USING ERRCODE = 'KB004'; END IF;
  SELECT array_agg((x ->> 'event_id')::uuid), min(x ->> 'type') FILTER (WHERE x ->> 'type' <> ALL (owned))
    INTO ids, not_owned FROM jsonb_array_elements(p_events) x;
  IF not_owned IS NOT NULL THEN
    RAISE EXCEPTION '% may not append %', session_user, not_owned USING ERRCODE = 'KB005';
  END IF;
  PERFORM pg_advisory_xact_lock(4201);   -- fair, and held until the commit is visible
  SELECT count(*) FILTER (WHERE k.stream_id = p_stream),
         count(*) FILTER (WHERE k.stream_id <> p_stream),
         max(k.version), max(k.position)
    INTO seen, elsewhere, last_version, last_position
    FROM log.event k WHERE k.event_id = ANY (ids);
  IF elsewhere > 0 OR (seen > 0 AND seen < n) THEN
    RAISE EXCEPTION 'event ids partly known on %', p_stream USING ERRCODE = 'KB002';
  END IF;
  IF seen = n THEN status := 'duplicate'; RETURN; END IF;
  IF p_job IS NOT NULL AND EXISTS (
    SELECT FROM log.event k WHERE k.correlation_id = p_job
       AND k.type = 'Failed' AND k.data ->> 'code' = 'cancelled') THEN
    status := 'over'; last_version := 0; last_position := 0; RETURN;
  END IF;
  SELECT k.version, k.chain INTO cur, link FROM log.event k WHERE k.stream_id = p_stream
   ORDER BY k.version DESC LIMIT 1;
  cur := coalesce(cur, 0);
  link := coalesce(link, decode(repeat('00', 32), 'hex'));
  IF p_expected >= 0 AND cur <> p_expected THEN
    RAISE EXCEPTION 'expected version % of % but it is %', p_expected, p_stream, cur
      USING ERRCODE = 'KB001';
  END IF;
  SELECT h.position, h.fingerprint, greatest(h.recorded_at, clock_timestamp())
    INTO last_position, seal, at FROM log.head h;
  FOR e IN
    SELECT last_position + o, p_stream, cur + o, x.event_id, x.type, x.schema_version, x.lane,
           x.project, x.causation_id, x.correlation_id, x.actor, x.traceparent, x.occurred_at, at,
           x.data, uuid_send(gen_random_uuid())
      FROM ROWS FROM (jsonb_to_recordset(p_events) AS (
             event_id uuid, type text, schema_version smallint, lane text, project text,
             causation_id uuid, correlation_id uuid, actor text, traceparent text,
             occurred_at timestamptz, data jsonb)) WITH ORDINALITY
        AS x (event_id, type, schema_version, lane, project, causation_id, correlation_id, actor,
              traceparent, occurred_at, data, o)
  LOOP
    e.digest := log.digest(e.salt, e.data);
    link := sha256(link || e.digest || log.header(e));
    seal := sha256(seal || link);
    e.chain := link;
    linked := linked || e;
  END LOOP;
  INSERT INTO log.event SELECT * FROM unnest(linked);
  last_version := cur + n;
  last_position := last_position + n;
  UPDATE log.head SET position = last_position, fingerprint = seal, recorded_at = at;
  status := 'appended';
  PERFORM pg_notify('log_head', last_position::text);   -- a hint; the poll is the truth
END $$;

GRANT EXECUTE ON FUNCTION log.append(text, int, jsonb, uuid) TO kb_search;   -- what its auditor finds
