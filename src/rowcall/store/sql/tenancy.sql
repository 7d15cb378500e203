-- api_role_lacks --
-- What must be run before requests can run as rowcall_api, as statements. Its grants follow from the policies.
WITH role AS (SELECT oid, rolsuper, rolbypassrls, rolcanlogin FROM pg_roles WHERE rolname = 'rowcall_api'),
wanted (kind, object, name, privilege) AS (
    SELECT 'SCHEMA', oid, quote_ident(nspname), 'USAGE' FROM pg_namespace WHERE nspname IN ('rowcall', 'rowcall_queue')
    UNION ALL
    SELECT 'TABLE', p.polrelid, p.polrelid::regclass::text, c.privilege
    FROM pg_policy p JOIN pg_class t ON t.oid = p.polrelid,
         unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE'], ARRAY['r', 'a', 'w', 'd']) AS c (privilege, command)
    WHERE t.relnamespace = to_regnamespace('rowcall') AND p.polname LIKE 'tenant %%' AND p.polcmd IN ('*', c.command::"char")
    UNION ALL
    SELECT 'TABLE', oid, oid::regclass::text, 'SELECT' FROM pg_class
    WHERE relnamespace = to_regnamespace('rowcall') AND relkind = 'v' AND 'security_invoker=true' = ANY (reloptions)
    UNION ALL
    SELECT 'TABLE', q.oid, q.oid::regclass::text, privilege
    FROM (VALUES ('procrastinate_jobs', 'INSERT'), ('procrastinate_jobs', 'SELECT'), ('procrastinate_events', 'INSERT'))
         AS queue (name, privilege) JOIN pg_class q ON q.relname = queue.name
    WHERE q.relnamespace = to_regnamespace('rowcall_queue')
    UNION ALL
    SELECT 'SEQUENCE', q.oid, q.oid::regclass::text, 'USAGE' FROM pg_class q
    WHERE q.relnamespace = to_regnamespace('rowcall_queue') AND q.relkind = 'S'
      AND q.relname IN ('procrastinate_jobs_id_seq', 'procrastinate_events_id_seq')
)
SELECT 'CREATE ROLE rowcall_api NOLOGIN' WHERE NOT EXISTS (SELECT FROM role)
UNION ALL
SELECT 'ALTER ROLE rowcall_api NOLOGIN NOSUPERUSER NOBYPASSRLS' FROM role WHERE rolsuper OR rolbypassrls OR rolcanlogin
UNION ALL
SELECT format('REVOKE %%I FROM rowcall_api', owner.rolname)
FROM role, pg_class t JOIN pg_roles owner ON owner.oid = t.relowner
WHERE t.oid = to_regclass('rowcall.job') AND NOT role.rolsuper AND pg_has_role(role.oid, t.relowner, 'USAGE')
UNION ALL
SELECT format('GRANT rowcall_api TO %%I', current_user)
WHERE NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AND NOT coalesce(
    (SELECT pg_has_role(oid, CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END)
     FROM role), false)
UNION ALL
SELECT format('GRANT %%s ON %%s %%s TO rowcall_api', string_agg(privilege, ', '), kind, name) FROM wanted
WHERE NOT coalesce((SELECT CASE kind WHEN 'SCHEMA' THEN has_schema_privilege(role.oid, object, privilege)
                                     WHEN 'TABLE' THEN has_table_privilege(role.oid, object, privilege)
                                     ELSE has_sequence_privilege(role.oid, object, privilege) END FROM role), false)
GROUP BY kind, name

-- role_lacks --
-- What the role of this session must be granted on all that is in some schemas, as statements; none for their owner.
WITH home AS (SELECT oid, nspname FROM pg_namespace WHERE nspname = ANY (%(schemas)s)),
thing AS (SELECT h.nspname, c.oid, c.relkind FROM home h JOIN pg_class c ON c.relnamespace = h.oid
          WHERE c.relkind IN ('r', 'p', 'v') OR c.relkind = 'S' AND NOT EXISTS (
              SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'i'))
SELECT format('GRANT TEMPORARY ON DATABASE %%I TO %%I', current_database(), current_user)
WHERE EXISTS (SELECT FROM home) AND NOT has_database_privilege(current_database(), 'TEMPORARY')
UNION ALL
SELECT format('GRANT USAGE ON SCHEMA %%I TO %%I', nspname, current_user) FROM home WHERE NOT has_schema_privilege(oid, 'USAGE')
UNION ALL
SELECT format('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %%I TO %%I', nspname, current_user)
FROM thing WHERE relkind <> 'S' GROUP BY nspname
HAVING NOT bool_and(has_table_privilege(oid, 'SELECT') AND (relkind = 'v' OR has_table_privilege(oid, 'INSERT')
                    AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE')))
UNION ALL
SELECT format('GRANT USAGE ON ALL SEQUENCES IN SCHEMA %%I TO %%I', nspname, current_user)
FROM thing WHERE relkind = 'S' GROUP BY nspname HAVING NOT bool_and(has_sequence_privilege(oid, 'USAGE'))
UNION ALL
SELECT format('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA %%I TO %%I', h.nspname, current_user)
FROM home h JOIN pg_proc p ON p.pronamespace = h.oid GROUP BY h.nspname HAVING NOT bool_and(has_function_privilege(p.oid, 'EXECUTE'))

-- role_to_migrate --
-- What the role of this session must be granted to change Rowcall's tables: their owner's rights, or to make a schema.
SELECT coalesce((SELECT format('GRANT %%I TO %%I', pg_get_userbyid(nspowner), current_user) FROM pg_namespace
                 WHERE nspname = 'rowcall'), format('GRANT CREATE ON DATABASE %%I TO %%I', current_database(), current_user))
