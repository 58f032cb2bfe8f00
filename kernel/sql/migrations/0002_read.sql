-- Projections (schema read) and caches (schema cache): all of it can be dropped and made again.
CREATE SCHEMA read;
CREATE SCHEMA cache;

-- One row a version: the manifest, folded from events.
CREATE TABLE read.version (
  version_id   text PRIMARY KEY,
  document_id  text NOT NULL,
  source_id    text NOT NULL,
  project      text NOT NULL,
  source_key   text NOT NULL,
  name         text NOT NULL,
  title        text NOT NULL,
  media_type   text NOT NULL,
  size_bytes   bigint NOT NULL,
  language     text,
  status       text NOT NULL,
  stage        text,
  verdict      text,
  parser       text,
  converter    text,
  embedder     text,
  parsed_sha256 text,
  body_sha256  text,
  meta_sha256  text,
  chunks_sha256 text,
  body_bytes   bigint,
  chunk_count  int,
  error        jsonb,
  supersedes   text,
  trusted      boolean NOT NULL DEFAULT false,
  received_at  timestamptz NOT NULL,
  valid_from   timestamptz NOT NULL,
  job_id       uuid NOT NULL,
  position     bigint NOT NULL              -- of the last event folded in
);
CREATE INDEX version_document ON read.version (document_id);
CREATE INDEX version_source ON read.version (source_id);
CREATE INDEX version_listing ON read.version (project, received_at DESC, version_id);

-- When a version is the valid one: [valid_from, valid_until). No row: it is not visible to search.
CREATE TABLE read.validity (
  version_id  text NOT NULL,
  document_id text NOT NULL,
  project     text NOT NULL,
  valid_from  timestamptz NOT NULL,
  valid_until timestamptz,
  PRIMARY KEY (version_id, valid_from)
);
CREATE INDEX validity_document ON read.validity (document_id);

-- One row an ingest: the fold of the events of one correlation.
CREATE TABLE read.job (
  job_id      uuid PRIMARY KEY,
  project     text NOT NULL,
  document_id text NOT NULL,
  version_id  text NOT NULL,
  name        text NOT NULL,
  status      text NOT NULL,
  stage       text,
  chunk_count int,
  error       jsonb,
  started_at  timestamptz NOT NULL,
  updated_at  timestamptz NOT NULL
);
CREATE INDEX job_listing ON read.job (started_at DESC, job_id);

-- Passages of one generation of a project's index; the keyword leg searches `terms`.
CREATE TABLE read.chunk (
  project      text NOT NULL,
  generation   int  NOT NULL,
  version_id   text NOT NULL,
  chunk_id     text NOT NULL,
  document_id  text NOT NULL,
  source_id    text NOT NULL,
  ordinal      int  NOT NULL,
  heading_path text[] NOT NULL,
  byte_start   int  NOT NULL,
  byte_end     int  NOT NULL CHECK (byte_end > byte_start),
  title        text NOT NULL,
  text         text NOT NULL,               -- the embedded text: breadcrumb, context, passage
  language     text NOT NULL,
  terms        tsvector NOT NULL,
  term_count   int  NOT NULL,
  point_id     uuid NOT NULL,
  PRIMARY KEY (project, generation, version_id, chunk_id)
);
-- A short pending list: a search reads it from end to end (32 ms with the default, 0.4 ms so).
CREATE INDEX chunk_terms ON read.chunk USING gin (terms) WITH (gin_pending_list_limit = 256);
CREATE INDEX chunk_point ON read.chunk (point_id);

-- Generations of a project's index, and the pointer that a query reads once.
CREATE TABLE read.generation (
  project    text NOT NULL,
  generation int  NOT NULL,
  embedder   text NOT NULL,
  dim        int  NOT NULL,
  state      text NOT NULL CHECK (state IN ('building', 'live', 'retired')),
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (project, generation)
);
CREATE TABLE read.active (
  project     text PRIMARY KEY,
  generation  int NOT NULL,
  switched_at timestamptz NOT NULL DEFAULT now(),
  FOREIGN KEY (project, generation) REFERENCES read.generation
);

CREATE TABLE cache.parse (
  source_id     text NOT NULL,
  parser        text NOT NULL,
  options       text NOT NULL,
  parsed_sha256 text NOT NULL,
  PRIMARY KEY (source_id, parser, options)
);
CREATE TABLE cache.embedding (
  embedder    text NOT NULL,
  text_sha256 bytea NOT NULL,
  vector      bytea NOT NULL,               -- float32, little endian
  PRIMARY KEY (embedder, text_sha256)
);
