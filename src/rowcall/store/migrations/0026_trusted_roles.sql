-- A role that was granted Rowcall's tables and doesn't own them works with these too; requests see nothing of them, as before.

CREATE POLICY trusted ON rowcall.file_store USING (current_user <> 'rowcall_api');
CREATE POLICY trusted ON rowcall.job_day USING (current_user <> 'rowcall_api');
