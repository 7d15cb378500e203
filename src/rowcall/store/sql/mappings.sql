-- add_column --
-- A column of the file and the field it goes to.
INSERT INTO rowcall.column_mapping (job_id, position, header, samples, target_field, status, reason, confidence, others,
    decimal_mark, date_order, place, separator)
VALUES (%(id)s, %(position)s, %(header)s, %(samples)s, %(field)s, %(status)s, %(reason)s, %(confidence)s, %(others)s,
    %(decimal)s, %(order)s, %(place)s, %(separator)s)

-- get_columns --
-- The columns of a job's file.
SELECT position, header, samples, target_field, status, reason, decimal_mark, date_order, confidence, others, doubtful, decided_by,
       place, separator, filled
FROM rowcall.column_mapping WHERE job_id = %(id)s ORDER BY position

-- free_columns --
-- Columns that something else is decided of.
UPDATE rowcall.column_mapping SET target_field = NULL WHERE job_id = %(id)s AND position = ANY (%(positions)s)

-- decide_column --
-- What a person decided of a column.
UPDATE rowcall.column_mapping
SET target_field = %(field)s, status = %(status)s, reason = %(reason)s, confidence = 1, decimal_mark = %(decimal)s,
    date_order = %(order)s, place = %(place)s, separator = %(separator)s, doubtful = %(doubtful)s, decided_by = %(by)s, decided_at = clock_timestamp()
WHERE job_id = %(id)s AND position = %(position)s

-- set_doubt --
-- Whether a column may have values that can be read in two ways.
UPDATE rowcall.column_mapping SET doubtful = %(doubtful)s WHERE job_id = %(id)s AND position = %(position)s

-- filled_before --
-- How many rows up to one have a value in each column.
SELECT n::int - 1, count(nullif(btrim(cell, %(blanks)s), ''))
FROM rowcall.row, unnest(cells) WITH ORDINALITY AS each(cell, n)
WHERE job_id = %(id)s AND number <= %(last)s AND problems -> 'record' IS NULL
GROUP BY n

-- set_filled --
-- How many rows have a value in a column.
UPDATE rowcall.column_mapping SET filled = %(filled)s WHERE job_id = %(id)s AND position = %(position)s

-- set_column_reading --
-- How the texts of a column are read.
UPDATE rowcall.column_mapping SET decimal_mark = %(decimal)s, date_order = %(order)s
WHERE job_id = %(id)s AND position = %(position)s

-- date_evidence --
-- Numeric dates of a column: those that can only be day first, only month first, and those that leave it open.
SELECT count(*) FILTER (WHERE one > 12 AND two <= 12) AS first, count(*) FILTER (WHERE two > 12 AND one <= 12) AS second,
       count(*) FILTER (WHERE one <= 12 AND two <= 12 AND one <> two) AS open,
       coalesce(min(text) FILTER (WHERE one <= 12 AND two <= 12 AND one <> two), min(text)) AS example
FROM (
    SELECT cells[%(place)s] AS text, part[1]::int AS one, part[2]::int AS two
    FROM rowcall.row, regexp_match(cells[%(place)s], '^\s*([0-9]{1,2})[-/.]([0-9]{1,2})[-/.][0-9]{2}') AS part
    WHERE job_id = %(id)s AND number <= %(last)s AND cells[%(place)s] NOT LIKE '____-%%' AND part IS NOT NULL
) dates

-- number_evidence --
-- Numbers of a column: those that can only have a decimal point, only a comma, and those that leave it open.
SELECT count(*) FILTER (WHERE text ~ point AND NOT text ~ comma) AS first,
       count(*) FILTER (WHERE text ~ comma AND NOT text ~ point) AS second,
       count(*) FILTER (WHERE text ~ point AND text ~ comma) AS open,
       min(text) FILTER (WHERE text ~ point AND text ~ comma) AS example,
       min(text) FILTER (WHERE text ~ point AND text ~ comma AND text LIKE '%%.%%') AS dotted,
       min(text) FILTER (WHERE text ~ point AND NOT text ~ comma) AS with_point,
       min(text) FILTER (WHERE text ~ comma AND NOT text ~ point) AS with_comma
FROM (
    SELECT btrim(cells[%(place)s]) AS text,
           '^[^0-9.,]*([0-9]+|[1-9][0-9]{0,2}([, ''][0-9]{3})+)?(\.[0-9]+)?[^0-9.,]*$' AS point,
           '^[^0-9.,]*([0-9]+|[1-9][0-9]{0,2}([. ''][0-9]{3})+)?(,[0-9]+)?[^0-9.,]*$' AS comma
    FROM rowcall.row
    WHERE job_id = %(id)s AND number <= %(last)s AND (cells[%(place)s] LIKE '%%.%%' OR cells[%(place)s] LIKE '%%,%%')
) numbers
