"""What tasks tell the driver: who they are, what they did, and the bytes in which they say so."""
