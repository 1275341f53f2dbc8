"""When waiting jobs start and finish: the state of a scheduler played forward with drawn run times, and its score."""
