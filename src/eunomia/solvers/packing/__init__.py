"""Programs in which two rows may share a column, and how their answers are parted among rows."""
