-- Whoever cancels a job over HTTP sees to its rows that wait.

SELECT rowcall.keep_apart('waiting');
