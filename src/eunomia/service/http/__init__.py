"""The HTTP API and the pages of the service. Needs starlette and uvicorn: the extra `service`."""
