-- Erasure: what a service must find to forget a text, and names that leave the log.

-- Whose passage was embedded: also of a version that was cut and never indexed.
ALTER TABLE cache.embedding ADD COLUMN version_id text;
CREATE INDEX embedding_version ON cache.embedding (version_id) WHERE version_id IS NOT NULL;
CREATE INDEX embedding_text ON cache.embedding (text_sha256);        -- of every model
GRANT DELETE ON cache.embedding TO kb_indexer;

-- The key of a text in cache.embedding; the database is in UTF-8, so this never changes.
CREATE FUNCTION read.text_key(body text) RETURNS bytea
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$ SELECT sha256(convert_to(body, 'UTF8')) $$;
REVOKE ALL ON FUNCTION read.text_key(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION read.text_key(text) TO kb_indexer;
CREATE INDEX chunk_text ON read.chunk (read.text_key(text));         -- who else has this text?

CREATE INDEX event_erased ON log.event (correlation_id) WHERE type = 'Erased';   -- of one request

-- An event is changed in one way only: by log.redact.
CREATE OR REPLACE FUNCTION log.guard() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE free text[] := ARRAY['data', 'salt', 'redacted_at'];
BEGIN
  IF TG_OP = 'UPDATE' AND current_setting('citelog.redacting', true) = 'on'
     AND NEW.salt IS NULL AND NEW.redacted_at IS NOT NULL
     AND to_jsonb(NEW) - free = to_jsonb(OLD) - free
  THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'log.event is append-only (%)', TG_OP USING ERRCODE = 'KB003';
END $$;

-- What is left of an event of an erased version: ids, hashes, counts (kernel.erasure.redacted).
CREATE FUNCTION log.redacted(type text, data jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE type
    WHEN 'DocumentReceived' THEN data || '{"name": "(erased)", "source_key": ""}'
    WHEN 'AttachmentsReceived' THEN data || jsonb_build_object('left_out', (
      SELECT coalesce(jsonb_agg(x || '{"name": "(erased)"}' ORDER BY n), '[]')
        FROM jsonb_array_elements(coalesce(data -> 'left_out', '[]')) WITH ORDINALITY AS l(x, n)))
    WHEN 'Parsed' THEN data || '{"warnings": []}'
    WHEN 'Released' THEN data || '{"reason": "(erased)"}'
    WHEN 'Rejected' THEN data || '{"reason": "(erased)"}'
    WHEN 'Failed' THEN data || '{"reason": "(erased)"}'
    ELSE data
  END
$$;

-- Take names, source keys and reasons of a version out of the log, where a person had it erased;
-- returns how many events lost something. Digest and chain stay, the salt goes with the words. Only
-- what was recorded before the tombstone changes: what was sent again since is another story.
-- Messages of failed deliveries go too, for they may quote what could not be read.
--   Raises KB006: nobody asked for this version to be erased.
CREATE FUNCTION log.redact(p_document text, p_version text) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = log, pg_temp AS $$
DECLARE
  streams text[] := ARRAY['document-' || p_document, 'version-' || p_version];
  tombstone bigint; changed int;
BEGIN
  SELECT max(e.position) INTO tombstone FROM log.event e
   WHERE e.stream_id = streams[1] AND e.type = 'Erased'
     AND e.data ->> 'version_id' = p_version AND e.data ->> 'reason' = 'request';
  IF tombstone IS NULL THEN
    RAISE EXCEPTION 'nobody had version % erased', p_version USING ERRCODE = 'KB006';
  END IF;
  PERFORM set_config('citelog.redacting', 'on', true);
  UPDATE log.event e SET data = log.redacted(e.type, e.data), salt = NULL, redacted_at = now()
   WHERE e.stream_id = ANY (streams) AND e.position < tombstone AND e.redacted_at IS NULL
     AND e.data ->> 'version_id' = p_version AND log.redacted(e.type, e.data) <> e.data;
  GET DIAGNOSTICS changed = ROW_COUNT;
  PERFORM set_config('citelog.redacting', '', true);
  UPDATE log.failure SET error = '' WHERE stream_id = ANY (streams) AND error <> '';
  RETURN changed;
END $$;
REVOKE ALL ON FUNCTION log.redacted(text, jsonb), log.redact(text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION log.redact(text, text) TO kb_ingest;

-- Up to which position nothing of what was erased is left in the files of this database (kb scrub).
CREATE TABLE log.scrub (
  one      boolean PRIMARY KEY DEFAULT true CHECK (one),
  position bigint NOT NULL DEFAULT 0,
  at       timestamptz
);
INSERT INTO log.scrub DEFAULT VALUES;
GRANT SELECT ON log.scrub TO kb_ingest;
