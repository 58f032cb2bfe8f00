-- concurrently
-- Which windows of a project hold at an instant? The spans of all projects stand in one line of
-- numbers, each project in its own stretch, in seconds: so the index leads to those of one project,
-- where the one before led to those of all. It names too many (part of a second, two projects with
-- one hash), never too few; the query compares project and times as well. With the other columns
-- in it the table itself is not read.
CREATE OR REPLACE FUNCTION read.instant(project text, at timestamptz) RETURNS bigint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT ((hashtextextended(project, 0) & 4194303) << 40) + 100000000000 + floor(extract(epoch FROM
    least(greatest(at AT TIME ZONE 'UTC', timestamp '0001-01-01'), timestamp '9999-12-31')))::bigint
$$;
CREATE OR REPLACE FUNCTION read.span(project text, since timestamptz, until timestamptz)
  RETURNS int8range LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT int8range(read.instant(project, since), greatest(read.instant(project, since),
    read.instant(project, coalesce(until, timestamptz '9999-12-31 00:00:00+00'))), '[]')
$$;
REVOKE ALL ON FUNCTION read.instant(text, timestamptz), read.span(text, timestamptz, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION read.instant(text, timestamptz), read.span(text, timestamptz, timestamptz) TO kb_search;
DROP INDEX CONCURRENTLY IF EXISTS read.validity_instant;
CREATE INDEX CONCURRENTLY validity_instant ON read.validity USING gist (read.span(project, valid_from, valid_until)) INCLUDE (version_id, project, valid_from, valid_until);
DROP INDEX CONCURRENTLY IF EXISTS read.validity_span;
