-- What class a text was of says something about it: it leaves the log with the names.
CREATE OR REPLACE FUNCTION log.redacted(type text, data jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE type
    WHEN 'DocumentReceived' THEN data || '{"name": "(erased)", "source_key": ""}'
    WHEN 'AttachmentsReceived' THEN data || jsonb_build_object('left_out', (
      SELECT coalesce(jsonb_agg(x || '{"name": "(erased)"}' ORDER BY n), '[]')
        FROM jsonb_array_elements(coalesce(data -> 'left_out', '[]')) WITH ORDINALITY AS l(x, n)))
    WHEN 'Parsed' THEN data || '{"warnings": []}'
    WHEN 'Released' THEN data || '{"reason": "(erased)"}'
    WHEN 'Rejected' THEN data || '{"reason": "(erased)"}'
    WHEN 'Failed' THEN data || '{"reason": "(erased)"}'
    WHEN 'Classified' THEN data || '{"main": "(erased)", "tags": []}'
    ELSE data
  END
$$;
