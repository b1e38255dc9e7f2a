"""Records and pure rules of the gateway's nouns. Nothing here waits, stores or knows a transport."""
