"""The HTTP server against its peers, on one machine and in one run."""
