"""From a scenario to the objects that a run is made of."""
