-- target_name --
-- The table of a name, its schema, and what it is.
SELECT c.oid, n.nspname, c.relname, c.relkind::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = to_regclass(%(name)s)

-- target_tables --
-- The tables a person may mean.
SELECT CASE WHEN pg_table_is_visible(c.oid) THEN c.relname ELSE n.nspname || '.' || c.relname END
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'rowcall')

-- target_columns --
-- The columns of a table with what they demand; domains are looked through, also such over domains and in arrays.
WITH RECURSIVE below AS (
    SELECT a.attnum, y.oid, y.typtype, y.typbasetype, greatest(a.atttypmod, y.typtypmod) AS typmod, y.typnotnull, y.typcategory, y.typelem, false AS inside
    FROM pg_attribute a JOIN pg_type y ON y.oid = a.atttypid WHERE a.attrelid = {oid} AND a.attnum > 0
    UNION ALL
    SELECT b.attnum, y.oid, y.typtype, y.typbasetype, y.typtypmod, y.typnotnull, y.typcategory, y.typelem, b.inside OR b.typtype <> 'd'
    FROM below b JOIN pg_type y ON y.oid = CASE WHEN b.typtype = 'd' THEN b.typbasetype WHEN b.typcategory = 'A' AND NOT b.inside THEN b.typelem END
), typed AS (
    SELECT attnum, max(oid) FILTER (WHERE NOT inside AND typtype <> 'd') AS base, max(oid) FILTER (WHERE inside AND typtype <> 'd') AS element,
           max(typmod) AS typmod, bool_or(typnotnull) FILTER (WHERE NOT inside) AS not_null
    FROM below GROUP BY attnum
)
SELECT a.attname AS name,
       format_type(a.atttypid, a.atttypmod) AS type,
       base.typname AS base,
       a.attnotnull OR m.not_null AS not_null, m.not_null AS never_null,
       CASE WHEN a.attidentity <> '' THEN format('nextval(%L::regclass)', pg_get_serial_sequence(a.attrelid::regclass::text, a.attname))
            WHEN a.attgenerated = '' THEN coalesce(pg_get_expr(d.adbin, d.adrelid), pg_get_expr(t.typdefaultbin, 0)) END AS "default",
       a.attgenerated <> '' AS generated,
       a.attidentity = 'a' AS always,
       CASE WHEN base.typname NOT IN ('int2', 'int4', 'int8') THEN NULL
            WHEN a.attidentity <> '' THEN pg_get_serial_sequence(a.attrelid::regclass::text, a.attname)
            WHEN pg_get_expr(d.adbin, d.adrelid) ~ '^nextval\(''[^'']+''::regclass\)$' THEN (
                SELECT format('%I.%I', n.nspname, s.relname) FROM pg_depend e JOIN pg_class s ON s.oid = e.refobjid
                JOIN pg_namespace n ON n.oid = s.relnamespace
                WHERE e.classid = 'pg_attrdef'::regclass AND e.objid = d.oid AND s.relkind = 'S') END AS sequence,
       CASE WHEN k.typname IN ('varchar', 'bpchar') AND m.typmod > 4 THEN m.typmod - 4 END AS max_length,
       CASE WHEN k.typname = 'numeric' AND m.typmod > 4 THEN ((m.typmod - 4) >> 16) & 65535 END AS precision,
       CASE WHEN k.typname = 'numeric' AND m.typmod > 4 THEN ((((m.typmod - 4) & 2047) # 1024) - 1024)
            WHEN k.typname IN ('timestamp', 'timestamptz', 'time', 'timetz') THEN
                CASE WHEN m.typmod >= 0 THEN m.typmod WHEN m.element IS NOT NULL THEN 6 END END AS scale,
       -- an index keeps equal values of such types once; numbers are the same with zeros at their end, the catalog may err about intervals,
       -- and a domain over an enum has no operators
       coalesce(o.collisdeterministic, true) AND (k.typtype = 'e' AND t.typtype <> 'd' OR k.typname = 'numeric' OR k.typname <> 'interval'
           AND CASE WHEN k.typname = 'varchar' THEN 'text'::regtype ELSE k.oid END IN (
               SELECT c.opcintype FROM pg_opclass c JOIN pg_am h ON h.oid = c.opcmethod AND h.amname = 'btree'
               JOIN pg_amproc p ON p.amprocfamily = c.opcfamily AND p.amproclefttype = c.opcintype AND p.amprocrighttype = c.opcintype
               WHERE c.opcdefault AND p.amprocnum = 4)) AS bitwise,
       CASE WHEN t.typtype = 'd' AND base.typtype = 'e' THEN format_type(base.oid, NULL) END AS equality,
       -- json keeps its form, jsonb tells its null from none, and composites and arrays of floats may hold what JSON has not
       k.typtype = 'c' OR (base.typcategory = 'A' AND k.typname IN ('float4', 'float8')) OR EXISTS (SELECT FROM pg_cast x WHERE x.castsource = k.oid AND x.casttarget IN ('json'::regtype, 'jsonb'::regtype)) AS own_json,
       base.typcategory = 'A' AS is_array,
       CASE WHEN base.typtype = 'e' THEN ARRAY(SELECT e.enumlabel::text FROM pg_enum e WHERE e.enumtypid = base.oid
                                              ORDER BY e.enumsortorder) END AS labels,
       col_description(a.attrelid, a.attnum) AS comment
FROM pg_attribute a
JOIN pg_type t ON t.oid = a.atttypid
JOIN typed m ON m.attnum = a.attnum
JOIN pg_type base ON base.oid = m.base
JOIN pg_type k ON k.oid = coalesce(m.element, m.base)
LEFT JOIN pg_collation o ON o.oid = a.attcollation
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = {oid} AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum

-- target_unique --
-- The unique indexes over plain columns, without a condition, the primary key first.
SELECT c.relname AS name,
       ARRAY(SELECT a.attname::text FROM unnest(i.indkey::int2[]) WITH ORDINALITY k (attnum, place)
             JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
             WHERE k.place <= i.indnkeyatts ORDER BY k.place) AS columns,
       i.indisprimary AS primary,
       i.indimmediate AS immediate
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = {oid} AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
    AND NOT EXISTS (SELECT FROM unnest(i.indkey::int2[], i.indcollation::oid[]) k (attnum, by)
                    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum WHERE k.by <> a.attcollation)
ORDER BY i.indisprimary DESC, c.relname

-- target_odd_unique --
-- The unique indexes with an idea of their own of what is the same: expressions, a condition, nulls that are equal,
-- another collation than the column's.
SELECT c.relname AS name,
       ARRAY(SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = i.indrelid AND a.attnum > 0
             AND (a.attnum = ANY (i.indkey::int2[]) OR a.attnum IN (
                 SELECT d.refobjsubid FROM pg_depend d WHERE d.objid = i.indexrelid AND d.refobjid = i.indrelid
                 AND d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass))
             ORDER BY a.attnum) AS columns,
       ARRAY(SELECT pg_get_indexdef(i.indexrelid, k.place::int, false)
                    || coalesce(' COLLATE ' || quote_ident(n.nspname) || '.' || quote_ident(o.collname), '')
             FROM unnest(i.indcollation::oid[]) WITH ORDINALITY k (by, place)
             LEFT JOIN pg_collation o ON o.oid = k.by LEFT JOIN pg_namespace n ON n.oid = o.collnamespace
             ORDER BY k.place) AS parts,
       pg_get_expr(i.indpred, i.indrelid) AS condition,
       i.indnullsnotdistinct AS nulls_equal
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = {oid} AND i.indisunique AND i.indisvalid
    AND (i.indpred IS NOT NULL OR i.indexprs IS NOT NULL OR i.indnullsnotdistinct
        OR EXISTS (SELECT FROM unnest(i.indkey::int2[], i.indcollation::oid[]) k (attnum, by)
                   JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum WHERE k.by <> a.attcollation))
ORDER BY c.relname

-- target_exclusions --
-- The exclusion constraints of a table.
SELECT conname FROM pg_constraint WHERE conrelid = {oid} AND contype = 'x' ORDER BY conname

-- target_plain --
-- Whether nothing but constraints has a say in what a table takes from us, the columns of it that others refer to,
-- whether what becomes of a row may depend on others: a trigger asks or changes a table, or calls who may; a rule
-- by which something else is done than to insert or update; and the columns that a trigger may give another value.
WITH called AS (
    SELECT g.tgtype, g.tgargs, f.proname, f.pronamespace = 'pg_catalog'::regnamespace AS own, l.lanname, w.whole,
           -- without rows that it notes elsewhere
           regexp_replace(w.whole, '\yinsert\s+into\s+[\w.]+\s*(\([^)]*\)\s*)?values\y', 'values', 'gi') AS body
    FROM pg_trigger g JOIN pg_proc f ON f.oid = g.tgfoid JOIN pg_language l ON l.oid = f.prolang, LATERAL (
        -- the body without comments, texts and what has the words of queries but asks nothing
        SELECT regexp_replace(f.prosrc, '--[^\n]*|/\*([^*]|\*+[^*/])*\*+/|''[^'']*''|\ydistinct\s+from\y', ' ', 'gi') AS whole) w
    WHERE g.tgrelid IN (SELECT {oid}::oid UNION ALL SELECT relid FROM pg_partition_tree({oid}) WHERE relid IS NOT NULL)
        AND NOT g.tgisinternal AND g.tgenabled IN ('O', 'A') AND g.tgtype & 20 <> 0
)
SELECT c.relkind = 'r' AND NOT (c.relispartition OR c.relhassubclass OR c.relrowsecurity)
       AND NOT EXISTS (SELECT FROM pg_rewrite w WHERE w.ev_class = c.oid)
       AND has_table_privilege(c.oid, 'INSERT') AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'SELECT')
       AND NOT EXISTS (SELECT FROM pg_inherits WHERE inhrelid = c.oid)
       AND NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = c.oid AND (NOT tgisinternal OR tgenabled <> 'O'))
       AND NOT EXISTS (SELECT FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
                       WHERE a.attrelid = c.oid AND a.attnum > 0 AND (a.attgenerated <> '' OR t.typtype NOT IN ('b', 'e')))
       AND NOT EXISTS (SELECT FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_am m ON m.oid = x.relam
                       WHERE i.indrelid = c.oid AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL OR i.indnullsnotdistinct
                           OR i.indisexclusion OR NOT i.indisvalid OR m.amname NOT IN ('btree', 'hash')))
       AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = c.oid AND (k.contype = 'x' OR k.condeferrable
                           OR NOT coalesce((to_jsonb(k)->>'conenforced')::boolean, true))) AS plain,
       ARRAY(SELECT DISTINCT a.attname::text FROM pg_constraint k JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (k.confkey)
             WHERE k.contype = 'f' AND k.confrelid = c.oid) AS referred_to,
       EXISTS (
           SELECT FROM called b WHERE NOT b.own AND (
               b.lanname <> 'plpgsql'
               OR b.body ~* '\y(select|perform|execute|insert|update|delete|merge|from|into|call|query|cursor|open|fetch|table|with)\y'
               -- what it notes must not be refused for what was noted before
               OR EXISTS (SELECT FROM regexp_matches(b.whole, '\yinsert\s+into\s+([\w.]+)', 'gi') noted (name), to_regclass(name[1]) there
                          WHERE there IS NULL OR EXISTS (SELECT FROM pg_trigger x WHERE x.tgrelid = there AND NOT x.tgisinternal)
                              OR EXISTS (SELECT FROM pg_index i WHERE i.indrelid = there AND (i.indisunique OR i.indisexclusion) AND NOT EXISTS (
                                  SELECT FROM pg_attribute a WHERE a.attrelid = there AND a.attnum = ANY (i.indkey::int2[])
                                      AND (a.attidentity <> '' OR a.atthasdef))))
               OR EXISTS (SELECT FROM regexp_matches(b.body, '([\w.]+)\s*\(', 'g') called (name)
                          WHERE lower(name[1]) NOT IN (SELECT p.proname FROM pg_proc p WHERE p.pronamespace = 'pg_catalog'::regnamespace)
                              AND NOT lower(name[1]) = ANY ('{{if,elsif,and,or,not,in,any,all,some,case,when,then,else,return,coalesce,nullif,greatest,least,array,row,cast,exists,values,while}}')))
       ) AS looks_around,
       (SELECT min(w.rulename)::text FROM pg_rewrite w WHERE w.ev_class = c.oid AND w.ev_type IN ('2', '3') AND w.ev_enabled IN ('O', 'A')) AS rule,
       ARRAY(SELECT a.attname::text
             -- as it is written in a regular expression
             FROM pg_attribute a, LATERAL (SELECT '"?' || regexp_replace(replace(a.attname, '"', '""'), '(\W)', '\\\1', 'g') || '"?' AS name) n
             WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND EXISTS (
                 SELECT FROM called b WHERE b.tgtype & 3 = 3 AND CASE
                     WHEN b.own AND b.proname = 'suppress_redundant_updates_trigger' THEN false
                     WHEN b.own AND b.proname ~ '^tsvector_update_trigger' THEN split_part(encode(b.tgargs, 'escape'), '\000', 1) = a.attname
                     ELSE b.lanname <> 'plpgsql'
                     -- all of the row at once
                     OR b.body ~* '\ynew\s*:?=|\yinto\s[^;]*\ynew\y(?!\s*\.)|\yfor\s+new\y|\ycall\y|\yreturn\s+(?!(new|old|null)\s*;)'
                     OR b.body ~* ('\ynew\s*\.\s*' || n.name || '\s*(\.\s*\S+\s*|\[[^]]*\]\s*)*:=')
                     OR b.body ~* ('(^|;|>>|\y(then|else|begin|loop)\y)\s*new\s*\.\s*' || n.name || '\s*(\.\s*\S+\s*|\[[^]]*\]\s*)*=')
                     OR b.body ~* ('\yinto\s[^;]*\ynew\s*\.\s*' || n.name || '(?!\w)') END)) AS meddled
FROM pg_class c WHERE c.oid = {oid}

-- target_foreign --
-- The foreign keys of a table.
SELECT k.conname AS name,
       ARRAY(SELECT a.attname::text FROM unnest(k.conkey) WITH ORDINALITY u (attnum, place)
             JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.attnum ORDER BY u.place) AS columns,
       n.nspname AS table_schema, r.relname AS table_name,
       ARRAY(SELECT a.attname::text FROM unnest(k.confkey) WITH ORDINALITY u (attnum, place)
             JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = u.attnum ORDER BY u.place) AS table_columns,
       has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(r.oid, 'SELECT') AND NOT row_security_active(r.oid) AS seen
FROM pg_constraint k JOIN pg_class r ON r.oid = k.confrelid JOIN pg_namespace n ON n.oid = r.relnamespace
WHERE k.conrelid = {oid} AND k.contype = 'f'
ORDER BY k.conname

-- target_referrers --
-- The foreign keys that refer to a table, or to a partition of it.
SELECT k.conname AS name, n.nspname AS table_schema, r.relname AS table_name,
       ARRAY(SELECT a.attname::text FROM unnest(k.conkey) WITH ORDINALITY u (attnum, place)
             JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.attnum ORDER BY u.place) AS columns,
       ARRAY(SELECT a.attname::text FROM unnest(k.confkey) WITH ORDINALITY u (attnum, place)
             JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = u.attnum ORDER BY u.place) AS target_columns,
       k.confdeltype IN ('a', 'r') AND coalesce((to_jsonb(k)->>'conenforced')::boolean, true)  -- from PostgreSQL 18 on
       AND NOT EXISTS (SELECT FROM pg_trigger g WHERE g.tgconstraint = k.oid AND g.tgrelid = k.confrelid AND g.tgenabled <> 'O')
           AS refuses,
       has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(r.oid, 'SELECT') AND NOT row_security_active(r.oid) AS seen
FROM pg_constraint k JOIN pg_class r ON r.oid = k.conrelid JOIN pg_namespace n ON n.oid = r.relnamespace
WHERE k.contype = 'f' AND k.conparentid = 0
  AND k.confrelid IN (SELECT to_regclass(%(table)s)::oid UNION SELECT relid FROM pg_partition_tree(to_regclass(%(table)s)))
ORDER BY 2, 3, 1

-- target_checks --
-- The check constraints of a table.
SELECT k.conname AS name,
       ARRAY(SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = k.conrelid AND a.attnum = ANY (k.conkey)
             ORDER BY a.attnum) AS columns,
       pg_get_expr(k.conbin, k.conrelid) AS expression
FROM pg_constraint k WHERE k.conrelid = {oid} AND k.contype = 'c'
    AND coalesce((to_jsonb(k)->>'conenforced')::boolean, true)  -- from PostgreSQL 18 on
ORDER BY k.conname

-- target_domain_checks --
-- The check constraints of the domains that columns of a table are of, or their elements.
WITH RECURSIVE below AS (
    SELECT a.attname, a.attnum, y.oid, y.typtype, y.typbasetype, y.typcategory, y.typelem
    FROM pg_attribute a JOIN pg_type y ON y.oid = a.atttypid WHERE a.attrelid = {oid} AND a.attnum > 0
    UNION
    SELECT b.attname, b.attnum, y.oid, y.typtype, y.typbasetype, y.typcategory, y.typelem
    FROM below b JOIN pg_type y ON y.oid = CASE WHEN b.typtype = 'd' THEN b.typbasetype WHEN b.typcategory = 'A' THEN b.typelem END
)
SELECT k.conname AS name, ARRAY[b.attname::text] AS columns, pg_get_expr(k.conbin, 0) AS expression
FROM below b JOIN pg_constraint k ON k.contypid = b.oid AND k.contype = 'c'
ORDER BY b.attnum, k.conname

-- lock_sequence --
-- Keep others of us from moving a sequence until this transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended('rowcall sequence ' || %(name)s::regclass::oid, 0))

-- sequence_standing --
-- Where a sequence stands and what this role may do with it.
SELECT CASE WHEN may_draw THEN pg_sequence_last_value(seqrelid) END AS last, seqstart AS start, seqmax AS most, seqincrement AS step,
       may_draw, has_sequence_privilege(seqrelid, 'UPDATE') AS may_set
FROM pg_sequence, has_sequence_privilege(seqrelid, 'USAGE') AS may_draw
WHERE seqrelid = %(name)s::regclass

-- draw_numbers --
-- The last of so many numbers of a sequence.
SELECT max(nextval(%(name)s::regclass)) FROM generate_series(1, %(count)s)

-- set_sequence --
-- Have a sequence go on behind a number, unless it has come that far meanwhile.
SELECT setval(%(name)s::regclass, %(number)s) WHERE pg_sequence_last_value(%(name)s::regclass) < %(number)s
