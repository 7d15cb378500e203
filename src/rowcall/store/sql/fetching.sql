-- url_to_fetch --
-- Where a job's file is to be fetched from, secrets and all.
SELECT url_with_secrets FROM rowcall.job WHERE id = %(id)s

-- set_file --
-- The file of a job is here; what it took to fetch it is forgotten.
UPDATE rowcall.job SET file_sha256 = %(sha256)s, url_with_secrets = NULL WHERE id = %(id)s AND file_sha256 IS NULL
