"""How a round's cost grows: a model of its processor seconds, fitted to measured rounds."""
