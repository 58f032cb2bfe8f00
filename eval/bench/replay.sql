-- name: set_head!
-- The log has so many events now.
UPDATE log.head SET position = :position, recorded_at = :recorded_at;
