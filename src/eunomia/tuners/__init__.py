"""THE SEARCHERS: users with quick reflexes, who live in a world and speak in events."""
