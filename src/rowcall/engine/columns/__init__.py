"""What the columns of a file mean: suggested, asked, remembered."""
