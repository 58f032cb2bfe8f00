-- name: get_parse$
SELECT parsed_sha256 FROM cache.parse
 WHERE source_id = :source_id AND parser = :parser AND options = :options;

-- name: put_parse!
INSERT INTO cache.parse (source_id, parser, options, parsed_sha256)
VALUES (:source_id, :parser, :options, :parsed_sha256)
ON CONFLICT (source_id, parser, options) DO UPDATE SET parsed_sha256 = excluded.parsed_sha256;

-- name: drop_parse
-- Forget the parses of these bytes; returns the blobs they were in.
DELETE FROM cache.parse WHERE source_id = :source_id RETURNING parsed_sha256;

-- name: get_embeddings
SELECT text_sha256, vector FROM cache.embedding
 WHERE embedder = :embedder AND text_sha256 = ANY(:text_sha256s::bytea[]);

-- name: put_embeddings!
INSERT INTO cache.embedding (embedder, text_sha256, vector, version_id)
SELECT :embedder, t, v, :version_id FROM unnest(:text_sha256s::bytea[], :vectors::bytea[]) AS u(t, v)
ON CONFLICT DO NOTHING;
