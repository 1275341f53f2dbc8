"""A cluster's own history: accounting becomes a scenario, which answers what a change of the cluster would do."""
