"""How a service talks to Postgres, JetStream, blobs, models and the outside."""
