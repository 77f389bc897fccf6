//! Comparison of a database with the schema that the migrations create.
//!
//! `catalog.txt` describes that schema. A test generates it from a migrated database, so that a
//! login needs no privileges for the comparison and a server only reads. Every definition must have
//! the same text on all supported versions of PostgreSQL, so expressions are not part of it, except
//! for those of policies; the sources of functions are compared by their hash.
//!
//! A distributed database has the same catalog on its coordinator. On the other nodes, `shards` compares
//! what protects the rows.

use tokio_postgres::{Client, Error as Driver};

use super::error;
use crate::error::Error;
use crate::schema_check::{Object, SchemaDeviation, compare};

/// One object per line: kind, name and definition, separated by tabs.
pub(super) const EXPECTED: &str = include_str!("../../../migrations/postgres/catalog.txt");

/// The server locks a table to print the expressions of its policies, and another session may have
/// locked it.
const LIMITS: &str = "SET lock_timeout = '2s'; SET statement_timeout = '30s'";

/// The tables of the schema.
const TABLES: &str = r"
    SELECT oid, relname::text AS name, relowner, relrowsecurity, relforcerowsecurity FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
        AND relname <> 'onward_move'";

/// What protects the rows of `tables`. Privileges are those that the role has in effect, however they
/// were granted. The owner has another name in each database.
pub(super) const ACCESS: &str = r"
    SELECT 'row security', name, concat_ws(', ',
        CASE WHEN relrowsecurity THEN 'enabled' ELSE 'disabled' END,
        CASE WHEN relforcerowsecurity THEN 'forced' END)
    FROM tables
    UNION ALL
    SELECT 'policy', format('%s.%s', name, polname), concat_ws(' ',
        CASE WHEN polpermissive THEN 'permissive' ELSE 'restrictive' END, polcmd::text, 'to',
        (SELECT string_agg(CASE role WHEN 0 THEN 'public' WHEN relowner THEN 'the owner'
            ELSE pg_get_userbyid(role)::text END, ', ' ORDER BY role) FROM unnest(polroles) AS role),
        'using ' || pg_get_expr(polqual, polrelid), 'check ' || pg_get_expr(polwithcheck, polrelid))
    FROM pg_policy JOIN tables ON tables.oid = polrelid
    UNION ALL
    SELECT 'privileges', format('onward_tenant on %s', name), coalesce((
        SELECT string_agg(privilege, ', ' ORDER BY place)
        FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER'])
            WITH ORDINALITY AS known (privilege, place)
        WHERE CASE WHEN privilege IN ('SELECT', 'INSERT', 'UPDATE', 'REFERENCES')
            THEN has_any_column_privilege('onward_tenant', tables.oid, privilege)
            ELSE has_table_privilege('onward_tenant', tables.oid, privilege) END), 'none')
    FROM tables";

/// All other objects.
const OTHERS: &str = r"
    SELECT 'table', name, 'table' FROM tables
    UNION ALL
    SELECT 'column', format('%s.%s', name, attname),
        format_type(atttypid, atttypmod) || CASE WHEN attnotnull THEN ' not null' ELSE '' END
    FROM pg_attribute JOIN tables ON tables.oid = attrelid WHERE attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT 'index', pg_class.relname::text, concat_ws(' ', CASE WHEN indisunique THEN 'unique' END,
        'on', tables.name, 'using', amname, format('(%s)', (SELECT string_agg(
            attname || CASE WHEN indoption[attnum - 1] & 1 = 1 THEN ' DESC' ELSE '' END, ', '
            ORDER BY attnum) FROM pg_attribute WHERE attrelid = indexrelid AND attnum > 0)),
        CASE WHEN indpred IS NOT NULL THEN 'partial' END,
        CASE WHEN NOT (indisvalid AND indisready AND indislive) THEN 'invalid' END)
    FROM pg_index JOIN tables ON tables.oid = indrelid JOIN pg_class ON pg_class.oid = indexrelid
        JOIN pg_am ON pg_am.oid = pg_class.relam
    UNION ALL
    SELECT 'constraint', format('%s.%s', tables.name, conname), concat_ws(' ', CASE contype
            WHEN 'p' THEN 'primary key' WHEN 'u' THEN 'unique' WHEN 'f' THEN 'foreign key'
            ELSE 'check' END,
        CASE WHEN NOT convalidated THEN 'not valid' END)
    FROM pg_constraint JOIN tables ON tables.oid = conrelid WHERE contype IN ('p', 'u', 'f', 'c')
    UNION ALL
    SELECT 'domain', typname::text, concat_ws(' ', format_type(typbasetype, typtypmod),
        (SELECT string_agg(conname::text, ', ' ORDER BY conname) FROM pg_constraint
            WHERE contypid = pg_type.oid AND contype = 'c' AND convalidated))
    FROM pg_type WHERE typnamespace = current_schema()::regnamespace AND typtype = 'd'
        AND starts_with(typname::text, 'onward_')
    UNION ALL
    SELECT 'function', name, concat_ws(' ',
        CASE WHEN prosecdef THEN 'security definer' ELSE 'security invoker' END,
        CASE provolatile WHEN 'i' THEN 'immutable' WHEN 's' THEN 'stable' ELSE 'volatile' END,
        (SELECT string_agg(regexp_replace(setting, '^search_path=.*, pg_temp$', 'search_path'), ' '
            ORDER BY setting) FROM unnest(proconfig) AS setting),
        CASE WHEN has_function_privilege('public', oid, 'EXECUTE') THEN 'for all' END,
        CASE WHEN has_function_privilege('onward_tenant', oid, 'EXECUTE') THEN 'for onward_tenant' END,
        left(encode(sha256(convert_to(prosrc, 'UTF8')), 'hex'), 16))
    FROM functions";

const FUNCTIONS: &str = r"
    SELECT pg_proc.*, format('%s(%s)', proname, pg_get_function_identity_arguments(oid)) AS name
    FROM pg_proc
    WHERE pronamespace = current_schema()::regnamespace AND starts_with(proname::text, 'onward_')";

/// The objects of the schema.
pub(super) fn objects_sql() -> String {
    format!(
        "WITH tables AS ({TABLES}), functions AS ({FUNCTIONS}), \
         objects (kind, name, definition) AS ({ACCESS} UNION ALL {OTHERS}) \
         SELECT kind, name, definition FROM objects \
         ORDER BY kind COLLATE ucs_basic, name COLLATE ucs_basic"
    )
}

/// The differences.
pub(super) async fn deviations(client: &Client) -> Result<Vec<SchemaDeviation>, Error> {
    let found = async {
        client.batch_execute(LIMITS).await?;
        let rows = client.query(&objects_sql(), &[]).await?;
        rows.iter()
            .map(|row| {
                Ok(Object {
                    kind: row.try_get(0)?,
                    name: row.try_get(1)?,
                    definition: row.try_get(2)?,
                })
            })
            .collect::<Result<Vec<Object>, Driver>>()
    };
    let found = found.await;
    let found = found.map_err(|why| error::of_statement(why, "schema comparison"))?;
    Ok(compare(&expected(), &found))
}

/// The schema of the migrations.
pub(super) fn expected() -> Vec<Object> {
    let object = |line: &str| {
        let mut cells = line.splitn(3, '\t').map(str::to_owned);
        Some(Object {
            kind: cells.next()?,
            name: cells.next()?,
            definition: cells.next()?,
        })
    };
    EXPECTED.lines().filter_map(object).collect()
}
