"""Static vectors: texts and their sentences as points whose closeness is closeness in meaning; NumPy only."""
