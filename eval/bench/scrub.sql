-- name: make_pool!
-- Texts of about 1,500 characters, of words that repeat as words of a language do, and vectors.
CREATE TEMP TABLE pool AS
SELECT n, body, to_tsvector('simple', body) AS terms, vector
  FROM generate_series(0, 999) AS n
  CROSS JOIN LATERAL (
    SELECT string_agg(substr(md5((power(random(), 4) * 40000)::int::text), 1, 6), ' ') AS body
      FROM generate_series(1, 220) AS w WHERE n = n) AS texts
  CROSS JOIN LATERAL (
    SELECT string_agg(uuid_send(gen_random_uuid()), '') AS vector
      FROM generate_series(1, 96) AS w WHERE n = n) AS vectors;

-- name: fill_passages!
INSERT INTO read.chunk (project, generation, version_id, chunk_id, document_id, source_id, ordinal,
  heading_path, byte_start, byte_end, title, text, language, terms, term_count, point_id)
SELECT 'bench', 1, md5((i / 50)::text), 'c' || i, md5((i / 50)::text), repeat(md5(i::text), 2), i % 50,
       ARRAY['Act', 'Chapter ' || i % 20], 0, 1500, 'Act ' || i / 50, p.body || ' ' || i, 'en', p.terms,
       220, gen_random_uuid()
  FROM generate_series(:first::int, :last::int) AS i JOIN pool p ON p.n = i % 1000;

-- name: fill_vectors!
INSERT INTO cache.embedding (embedder, text_sha256, vector)
SELECT 'bench', sha256(i::text::bytea), p.vector
  FROM generate_series(:first::int, :last::int) AS i JOIN pool p ON p.n = i % 1000;

-- name: forget_some!
-- What an erasure of one document in ten leaves behind.
DELETE FROM read.chunk WHERE ordinal % 10 = 0;
