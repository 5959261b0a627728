"""What the user hands in, checked, in the form in which it travels; what differs by Spark."""
