"""The learned order: priorities from what a scheduler really has, without durations."""
