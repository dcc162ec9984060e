"""The checks of the security list at their figures: short in the suite, whole in `make soak`."""
