"""The nouns: frozen values that check themselves."""
