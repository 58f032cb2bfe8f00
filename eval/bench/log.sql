-- name: append_reference^
SELECT status, last_version, last_position FROM es.append(:stream_id, -1, :events);

-- name: append_ours^
SELECT status, last_version, last_position FROM log.append(:stream_id, -1, :events);
