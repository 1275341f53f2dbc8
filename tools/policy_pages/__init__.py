"""What the pages about policies are made of: worked examples, a small workload, pictures and texts."""
