"""How the outside reaches us: one folder a face, each knocking at the same two doors."""
