"""How well columns of files are matched to fields: importers, labelled files, and figures."""
