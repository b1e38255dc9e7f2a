"""HTTP/1.1 server and client over anyio and h11. An island: imports nothing of the gateway."""
