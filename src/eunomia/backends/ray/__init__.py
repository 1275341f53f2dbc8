"""The Ray backend: Ray starts and stops gangs, as detached actors in placement groups pinned to nodes."""
