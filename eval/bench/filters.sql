-- name: label!
-- Tags by chance, the same at every run: `share0.05` has one of twenty versions.
UPDATE read.version v SET labels = (
  SELECT array_agg('tag:share' || share) FROM unnest(:shares::float8[]) AS s (share)
   WHERE (hashtextextended(v.version_id, 0) & 65535) < share * 65536);
