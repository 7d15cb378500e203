"""A service in a storm: three organisations import over HTTP while everything that can fail does.

`make faults MINUTES=5 SEED=1` runs it. `docs/faults.md` says what it does and what it holds the service to.
"""
