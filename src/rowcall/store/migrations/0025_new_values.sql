-- Values of which an importer says that what they name is created are gathered, too: one spelling names it.

ALTER TABLE rowcall.value_mapping DROP CONSTRAINT value_mapping_basis_check;
ALTER TABLE rowcall.value_mapping ADD CONSTRAINT value_mapping_basis_check
    CHECK (basis IN ('exact', 'synonym', 'folded', 'remembered', 'similar', 'new', 'person'));
