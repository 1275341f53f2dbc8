"""The price method: a program of many rows and few columns, solved in the prices of the columns."""
