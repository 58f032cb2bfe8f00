"""The six services. They never import each other."""
