"""Ready-made importers, tables and exports, one domain each."""
