"""The service: a controller around the scheduling core, a durable store, an HTTP API and a client.

Extra: eunomia[service]. Only `http` and `server` need it; controller, store and client use the base install.
"""
