"""What crosses a border between services: events, envelope, flow, artefacts, HTTP models."""
