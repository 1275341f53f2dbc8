"""Values that check themselves, and the arithmetic with the same bits on every machine."""
