"""What models speak: the OpenAI dialect, the built-in echo model, and the upstream behind the gateway."""
