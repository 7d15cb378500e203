"""What a server can be asked, by noun."""
