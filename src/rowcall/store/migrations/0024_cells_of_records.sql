-- A record of which nothing could be read has no cells: the first that is said must not become the first column's.

CREATE OR REPLACE FUNCTION rowcall.with_cells(cells text[], positions integer[], texts text[]) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF cardinality(cells) = 0 THEN  -- else it would begin with the first that is set
        cells := array_fill(NULL::text, ARRAY[(SELECT max(place) + 1 FROM unnest(positions) place)]);
    END IF;
    FOR place IN 1 .. cardinality(positions) LOOP
        cells[positions[place] + 1] := texts[place];
    END LOOP;
    RETURN cells;
END
$$;
