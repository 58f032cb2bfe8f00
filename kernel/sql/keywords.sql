-- name: prepare_search!
-- For this transaction: plan each question by its own words; no reading of all rows, which looks
-- cheap to the planner because `terms` is stored out of line; no compiling of short statements.
SELECT set_config('plan_cache_mode', 'force_custom_plan', true),
       set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true);

-- name: search_keywords
-- Best passages by BM25 (k1 1.2, b 0.75) over those that match `tsquery` and pass the filters.
-- A word scores by the best of its terms. `passages`: size of the base. `rarity`: for each term how
-- many passages hold it, where that is known beforehand; else it is counted. The mean length is that
-- of the matching passages.
-- `possible`: the sum over `required` words that are each held once by a passage of mean length; a word
-- that nothing holds counts as the rarest.
-- `complete_first`: passages that hold all `required` words come before the others.
-- `large`: go by the words; else by the projects, of which it then tells the planner. `most`: of more
-- matching passages only so many are read; null: all. `known`: by what was said of validity then;
-- null: by what is said now. `fitted`: the version has to pass filters of its own. `brought` stands
-- alone, else the planner, which knows nothing of read.known, goes through all passages of all valid
-- versions where many pass.
WITH asked AS MATERIALIZED (
  SELECT term, word, rarity
  FROM unnest(:terms::text[], :groups::int[], :rarity::float8[]) AS q (term, word, rarity)
),
brought AS MATERIALIZED (
  SELECT c.point_id, c.version_id, c.chunk_id, c.terms, c.term_count
  FROM read.chunk c
  WHERE c.terms @@ :tsquery::text::tsquery
    AND (:large OR c.project = ANY (:projects::text[]) AND c.generation = ANY (:generations::int[]))
    AND c.project || ' ' || c.generation = ANY (:bases::text[])
    AND (:versions::text[] IS NULL OR c.version_id = ANY (:versions))
    AND (cardinality(:languages::text[]) = 0 OR c.language = ANY (:languages))
    AND (cardinality(:documents::text[]) = 0 OR c.document_id = ANY (:documents))
    AND c.heading_path[1 : cardinality(:heading_prefix::text[])] = :heading_prefix::text[]
),
matching AS MATERIALIZED (
  SELECT c.point_id, c.version_id, c.chunk_id, c.terms, c.term_count
  FROM brought c
  WHERE EXISTS (
      SELECT FROM read.known v
      WHERE v.version_id = c.version_id
        AND (:known::timestamptz IS NULL AND v.current
             OR v.recorded_from <= :known AND (v.current OR v.recorded_until > :known))
        AND (:moment::timestamptz IS NULL
             OR v.valid_from <= :moment AND (v.valid_until IS NULL OR v.valid_until > :moment))
        AND (:dated_from::timestamptz IS NULL OR v.valid_from >= :dated_from)
        AND (:dated_until::timestamptz IS NULL OR v.valid_from <= :dated_until))
    AND (NOT :fitted OR EXISTS (
      SELECT FROM read.version v
      WHERE v.version_id = c.version_id
        AND (:media_types::text[] IS NULL OR v.media_type = ANY (:media_types))
        AND (:tags::text[] IS NULL OR v.labels @> :tags)
        AND (:classes::text[] IS NULL OR v.labels && :classes)
        AND (:received_from::timestamptz IS NULL OR v.received_at >= :received_from)
        AND (:received_until::timestamptz IS NULL OR v.received_at <= :received_until)))
    AND (:known IS NULL OR EXISTS (SELECT FROM read.validity n WHERE n.version_id = c.version_id))
  LIMIT :most::bigint
),
corpus AS MATERIALIZED (
  SELECT count(*) AS matched, greatest(:passages::float8, count(*)) AS passages,
         greatest(avg(term_count), 1)::float8 AS mean
  FROM matching
),
found AS MATERIALIZED (
  SELECT m.point_id, m.term_count, t.lexeme AS term, cardinality(t.positions)::float8 AS often
  FROM matching m
  CROSS JOIN LATERAL unnest(ts_filter(setweight(m.terms, 'A', :terms::text[]), '{a}')) AS t
),
holding AS MATERIALIZED (
  SELECT term, count(*)::float8 AS counted FROM found GROUP BY term
),
weighed AS MATERIALIZED (
  SELECT a.term, a.word,
         ln(1 + (greatest(c.passages - n.holding, 0) + 0.5) / (n.holding + 0.5)) AS weight
  FROM asked a
  JOIN holding h USING (term)
  CROSS JOIN corpus c
  CROSS JOIN LATERAL (SELECT greatest(a.rarity, h.counted) AS holding) AS n
),
by_word AS (
  SELECT f.point_id, w.word,
         max(w.weight * f.often * 2.2::float8
             / (f.often + 1.2::float8 * (0.25 + 0.75::float8 * f.term_count / c.mean))) AS score
  FROM found f JOIN weighed w USING (term) CROSS JOIN corpus c
  GROUP BY f.point_id, w.word
),
possible AS (
  SELECT sum(coalesce(k.weight, ln(1 + (c.passages + 0.5) / 0.5::float8))) AS score
  FROM (SELECT DISTINCT word FROM asked WHERE word = ANY (:required::int[])) AS a
  LEFT JOIN (SELECT word, max(weight) AS weight FROM weighed GROUP BY word) AS k USING (word)
  CROSS JOIN corpus c
),
scored AS (
  SELECT point_id, sum(score) AS score,
         count(*) FILTER (WHERE word = ANY (:required::int[]))
           = cardinality(:required::int[]) AS complete
  FROM by_word
  GROUP BY point_id
)
SELECT point_id, m.version_id, m.chunk_id, s.score, (SELECT matched FROM corpus) AS matched,
       (SELECT score FROM possible) AS possible
FROM scored s JOIN matching m USING (point_id)
ORDER BY s.complete AND :complete_first DESC, s.score DESC, point_id
LIMIT :limit;

-- name: count_passages$
-- Size of all bases together.
SELECT count(*) FROM read.chunk
 WHERE project = ANY (:projects::text[]) AND generation = ANY (:generations::int[])
   AND project || ' ' || generation = ANY (:bases::text[]);

-- name: count_versions$
-- How many versions the passages of all bases belong to.
SELECT count(DISTINCT version_id) FROM read.chunk
 WHERE project = ANY (:projects::text[]) AND generation = ANY (:generations::int[])
   AND project || ' ' || generation = ANY (:bases::text[]);

-- name: sample_terms
-- Terms of about `percent` of the table's pages that are in at least `least` of the passages there.
-- The same while the table does not change.
SELECT word AS term, ndoc AS passages
FROM ts_stat(format(
  'SELECT terms FROM read.chunk TABLESAMPLE SYSTEM (%s) REPEATABLE (1)
   WHERE project || '' '' || generation = ANY (%L::text[])', :percent::float8, :bases::text[]))
WHERE ndoc >= :least;

-- name: sample_size$
-- How many passages `sample_terms` looked at.
SELECT count(*) FROM read.chunk TABLESAMPLE SYSTEM (:percent::float8) REPEATABLE (1)
WHERE project || ' ' || generation = ANY (:bases::text[]);
