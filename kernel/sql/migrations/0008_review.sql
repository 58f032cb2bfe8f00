-- What waits for a person, and what an administrator trusted: short lists out of many versions.
CREATE INDEX version_review ON read.version (received_at DESC, version_id DESC)
  WHERE status = 'review';
CREATE INDEX version_trusted ON read.version (received_at DESC, version_id DESC) WHERE trusted;
