"""How time is cut: when seats come free, and until when they are given."""
