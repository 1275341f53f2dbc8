"""Reading input: one reader of tables, one set of field rules, one collector of problems; and writing files whole."""
