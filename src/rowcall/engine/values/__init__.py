"""What the values of look-ups and choices stand for: found, asked, remembered."""
