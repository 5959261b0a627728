"""Plans that change between micro-batches, and where they are kept."""
