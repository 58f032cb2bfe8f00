-- One role a service, with the least it needs. Passwords are set by kernel.migrations.
DO $$
DECLARE r text;
BEGIN
  FOREACH r IN ARRAY ARRAY['kb_ingest', 'kb_converter', 'kb_scanner', 'kb_indexer', 'kb_search',
                           'kb_ui', 'kb_relay'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = r) THEN
      EXECUTE format('CREATE ROLE %I LOGIN', r);
    END IF;
  END LOOP;
  EXECUTE format('GRANT CONNECT ON DATABASE %I TO kb_ingest, kb_converter, kb_scanner, kb_indexer,
                  kb_search, kb_ui, kb_relay', current_database());
END $$;
REVOKE ALL ON FUNCTION log.append(text, int, jsonb) FROM PUBLIC;

GRANT USAGE ON SCHEMA log TO kb_ingest, kb_converter, kb_scanner, kb_indexer, kb_search, kb_ui, kb_relay;
GRANT SELECT ON log.event, log.head TO kb_ingest, kb_converter, kb_scanner, kb_indexer, kb_search, kb_ui, kb_relay;
GRANT EXECUTE ON FUNCTION log.append(text, int, jsonb) TO kb_ingest, kb_converter, kb_scanner, kb_indexer;
GRANT SELECT, INSERT, UPDATE ON log.failure TO kb_ingest, kb_converter, kb_scanner, kb_indexer;
GRANT SELECT ON log.failure TO kb_search, kb_ui;
GRANT SELECT ON log.identity TO kb_ingest;
GRANT SELECT, INSERT, UPDATE ON log.projection TO kb_search;
GRANT SELECT ON log.projection TO kb_ingest, kb_indexer, kb_ui;

GRANT USAGE ON SCHEMA read TO kb_indexer, kb_search;
GRANT SELECT, INSERT, UPDATE, DELETE ON read.chunk, read.generation, read.active TO kb_indexer;
GRANT SELECT ON read.version, read.validity TO kb_indexer;
GRANT SELECT, INSERT, UPDATE, DELETE ON read.version, read.validity, read.job TO kb_search;
GRANT SELECT ON read.chunk, read.generation, read.active TO kb_search;

GRANT USAGE ON SCHEMA cache TO kb_converter, kb_indexer, kb_ingest;
GRANT SELECT, INSERT, UPDATE ON cache.parse TO kb_converter;
GRANT SELECT, DELETE ON cache.parse TO kb_ingest;
GRANT SELECT, INSERT, UPDATE ON cache.embedding TO kb_indexer;
