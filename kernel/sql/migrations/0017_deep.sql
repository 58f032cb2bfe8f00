-- Which windows hold at an instant? Asked where a project has far more past versions than valid ones.
-- A window that ended before it began holds at none: that is not for the index to find wrong.
CREATE INDEX validity_span ON read.validity USING gist
  ((CASE WHEN valid_until < valid_from THEN 'empty' ELSE tstzrange(valid_from, valid_until) END));
