"""What a job wrote, taken back: created rows are deleted, updated ones restored, versions removed."""
