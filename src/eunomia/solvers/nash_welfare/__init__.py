"""The machinery of the smooth concave engine: responses to prices, tallies of settled rows, and an interior point."""
