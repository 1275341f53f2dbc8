"""The loop of a run, the record that it writes, and what is made of records: replay and explanations."""
