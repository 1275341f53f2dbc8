"""The service: a controller around the scheduling core, a durable store, an HTTP API and a client.

Needs the extra `service`. Only `http` and `server` need it; controller, store and client use the base install.
"""
