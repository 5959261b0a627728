"""What can be watched: a broker, a producer and three queries on this machine; see `make live`."""
