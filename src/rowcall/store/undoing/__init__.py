"""Rows of a target that are brought back to what they were before an import.

Outcomes say which row of the target is meant and what it was before. Which rows can be taken back is found set-wise in
a temporary table, for a slice of a job with its rows locked, or for all of it (`finding`, `blocking`); then they are
written (`writing`), or it is told what would be (`telling`).
"""
