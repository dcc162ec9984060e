"""The proof: tests that mirror src, gates that hold the house rules, and the real parts they run against."""
