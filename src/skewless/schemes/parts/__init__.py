"""What several schemes are made of."""
