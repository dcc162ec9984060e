"""Mini-apps, as far as no wire is needed: their definitions, their protocol, the devices they run on."""
