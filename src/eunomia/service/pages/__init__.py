"""The pages of the dashboard: made on the server, no framework, no outside address."""
