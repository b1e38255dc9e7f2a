"""SQL and nothing else: the database behind one protocol, and a repository for each noun."""
