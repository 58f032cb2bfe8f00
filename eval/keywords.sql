-- One passage a document, visible for ever; again: replaced.
WITH document AS (
  SELECT * FROM unnest($2::text[], $3::text[], $4::text[], $5::int[], $6::uuid[])
    AS d (name, language, terms, term_count, point_id)
),
visible AS (
  INSERT INTO read.validity (version_id, document_id, project, valid_from)
  SELECT name, name, $1, '2000-01-01' FROM document
  ON CONFLICT DO NOTHING
)
INSERT INTO read.chunk (project, generation, version_id, chunk_id, document_id, source_id, ordinal,
  heading_path, byte_start, byte_end, title, text, language, terms, term_count, point_id)
SELECT $1, 1, name, 'c', name, name, 0, '{}', 0, 1, '', '', language, terms::tsvector, term_count, point_id
FROM document
ON CONFLICT (project, generation, version_id, chunk_id)
DO UPDATE SET terms = excluded.terms, term_count = excluded.term_count, language = excluded.language
