"""The part of the bench on hints: a robot without a language model follows what they suggest."""
