"""What both benchmarks share: the people in their files, measured processes, musts, tables and charts."""
