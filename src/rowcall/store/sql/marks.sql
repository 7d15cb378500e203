-- mark_known --
-- The mark of the file store that the database belongs to.
SELECT mark FROM rowcall.file_store

-- mark_of_known_files --
-- Some of the files that were stored last: a store that has none of them is another one.
SELECT location FROM rowcall.file ORDER BY created_at DESC LIMIT 5

-- set_mark --
-- Have the database belong to the store with this mark.
INSERT INTO rowcall.file_store (mark) VALUES (%(mark)s)
ON CONFLICT (only_one) DO UPDATE SET mark = EXCLUDED.mark, since = now()
