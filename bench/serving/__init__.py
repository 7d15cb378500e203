"""The service under load: what it is asked, what it answers, what that costs."""
