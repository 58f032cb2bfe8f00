-- name: collect!
-- Every SHA-256 that an event or the parse cache says, whatever it stands for.
CREATE TEMP TABLE named AS
SELECT value AS name FROM log.event CROSS JOIN LATERAL jsonb_each_text(data)
 WHERE value ~ '^[0-9a-f]{64}$'
UNION
SELECT parsed_sha256 FROM cache.parse;

-- name: parses_with_files
-- Parses in which there are files.
SELECT DISTINCT data ->> 'parsed_sha256' AS name FROM log.event
 WHERE type = 'Parsed' AND (data ->> 'attachments')::int > 0;

-- name: add!
INSERT INTO named SELECT unnest(:names::text[]);

-- name: unknown
SELECT name FROM unnest(:names::text[]) AS n (name)
 WHERE NOT EXISTS (SELECT FROM named k WHERE k.name = n.name);
