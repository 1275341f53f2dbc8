"""The floor: who sits where; gangs whole or not at all."""
