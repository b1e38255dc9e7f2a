"""What the gateway can be asked to do, one row each. Knows no HTTP message: the edges read the rows."""
