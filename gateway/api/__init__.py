"""The REST edge: requests to operations and back, the one error shape, credentials, the OpenAPI document."""
