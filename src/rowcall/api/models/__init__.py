"""What goes over the wire, as the OpenAPI document tells it."""
