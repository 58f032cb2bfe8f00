-- name: projects
-- Every project with a version that is not erased, or that a person made and nobody deleted.
WITH counted AS (
  SELECT project, count(DISTINCT document_id) AS documents, count(*) AS versions,
         count(*) FILTER (WHERE live) AS indexed,
         count(*) FILTER (WHERE status = 'review') AS review
    FROM read.version WHERE status NOT IN ('erased', 'blocked') GROUP BY project
), running AS (
  SELECT project, count(*) AS running FROM read.job WHERE status = ANY(:working::text[])
   GROUP BY project
), made AS (
  SELECT DISTINCT ON (project) project, type FROM log.event
   WHERE type IN ('ProjectCreated', 'ProjectDeleted') ORDER BY project, position DESC
)
SELECT project, coalesce(documents, 0) AS documents, coalesce(versions, 0) AS versions,
       coalesce(indexed, 0) AS indexed, coalesce(review, 0) AS review,
       coalesce(running, 0) AS running
  FROM counted FULL JOIN (SELECT project FROM made WHERE type = 'ProjectCreated') m USING (project)
  LEFT JOIN running USING (project)
 ORDER BY project;
