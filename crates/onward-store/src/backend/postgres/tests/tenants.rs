//! Row security: a tenant reads and writes only its own rows, regardless of the login.

use onward_testbed::psql;

use super::*;

#[tokio::test]
async fn every_tenant_table_has_row_security() {
    let url = Cluster::shared().database();
    open(&url).await;
    let unguarded = psql(
        &url,
        "SELECT relname FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid \
         WHERE attname = 'tenant_id' AND relkind = 'r' AND NOT (relrowsecurity AND relforcerowsecurity)",
    );
    assert_eq!(unguarded.unwrap(), "");
    let rights = psql(
        &url,
        "SELECT DISTINCT string_agg(privilege_type, ',' ORDER BY privilege_type) \
         FROM information_schema.role_table_grants WHERE grantee = 'onward_tenant' \
         GROUP BY table_name = 'events', table_name ORDER BY 1",
    );
    let rights = rights.unwrap();
    assert_eq!(
        rights.split_whitespace().collect::<Vec<_>>(),
        ["DELETE,INSERT,SELECT,UPDATE", "INSERT,SELECT"],
        "the second one for the audit trail"
    );
}

/// The functions that row security does not restrict. `docs/threat-model.md` lists those that return
/// rows of all tenants; the others compare the tenant of the session, or read no rows of tenants.
#[tokio::test]
async fn only_known_functions_run_as_the_owner() {
    let url = Cluster::shared().database();
    open(&url).await;
    let executable = |role: &str| {
        let functions = format!(
            "SELECT proname FROM pg_proc WHERE prosecdef AND pronamespace = 'public'::regnamespace \
             AND has_function_privilege('{role}', oid, 'EXECUTE') ORDER BY proname"
        );
        psql(&url, &functions).unwrap()
    };
    assert_eq!(executable("public"), "");
    assert_eq!(
        executable("onward_tenant")
            .split_whitespace()
            .collect::<Vec<_>>(),
        [
            "onward_delete_events",
            "onward_due_between",
            "onward_due_calls_of_host",
            "onward_due_calls_until",
            "onward_due_first",
            "onward_due_late",
            "onward_near",
            "onward_obstacles",
            "onward_plan_groups",
            "onward_plan_word_count",
            "onward_plans_found",
            "onward_search",
            "onward_tenants",
            "onward_tenants_expired",
            "onward_token_of_hash",
            "onward_word_count",
        ]
    );
}

async fn tenants_are_apart(postgres: &Postgres) {
    put(postgres, "a", "one").await.unwrap();
    assert_eq!(keys(postgres, "a").await, 1);

    let mut tx = begin(postgres, "b");
    assert_eq!(
        number(&mut tx, KEYS, params!["a"]).await.unwrap(),
        0,
        "B queries the rows of A"
    );
    assert_eq!(
        number(&mut tx, ALL_KEYS, vec![]).await.unwrap(),
        0,
        "B queries without a tenant"
    );
    let theirs = Statement::without_tenant(RENAME, params!["a", "one", "stolen"]);
    tx.queue(theirs.clone().expecting(0));
    tx.query(vec![]).await.unwrap();
    let smuggled = Statement::without_tenant(KEY, params!["a", "two", uuid::Uuid::nil()]);
    let why = tx.query(vec![smuggled]).await.unwrap_err();
    assert!(
        matches!(&why, Error::Refused { why: message, .. } if message.contains("row-level security")),
        "{why}"
    );
    rollback(tx);

    let mut tx = begin(postgres, "");
    assert_eq!(
        number(&mut tx, ALL_KEYS, vec![]).await.unwrap(),
        0,
        "without a tenant no row is visible"
    );
    let ownerless = Statement::without_tenant(KEY, params!["", "two", uuid::Uuid::nil()]);
    assert!(
        tx.query(vec![ownerless]).await.is_err(),
        "and none can be written"
    );
    rollback(tx);
    assert_eq!(keys(postgres, "a").await, 1);
}

#[tokio::test]
async fn a_superuser_does_not_bypass_row_security() {
    let url = Cluster::shared().database();
    assert_eq!(
        psql(&url, "SELECT current_setting('is_superuser')")
            .unwrap()
            .trim(),
        "on"
    );
    tenants_are_apart(&open(&url).await.0).await;
}

/// An empty database of a cluster, with a login that will own the tables and is not a superuser. The
/// cluster must not have the role of transactions yet: the owner creates it.
fn with_owner(cluster: &Cluster) -> String {
    let url = cluster.database();
    let owner = format!("owner_{}", url.rsplit('/').next().unwrap());
    psql(&url, &format!("CREATE ROLE {owner} LOGIN CREATEROLE")).unwrap();
    psql(&url, &format!("GRANT CREATE ON SCHEMA public TO {owner}")).unwrap();
    as_role(&url, &owner)
}

#[tokio::test]
async fn the_owner_of_the_tables_does_not_bypass_row_security() {
    let cluster = Cluster::start();
    let url = with_owner(&cluster);
    tenants_are_apart(&open(&url).await.0).await;
    let seen = psql(&url, "SELECT count(*) FROM idempotency_keys").unwrap();
    assert_eq!(seen.trim(), "0", "not even with another client");
}

/// An artifact of the tenant, and its chunk with one word.
const ARTIFACT: Query = Query::Text(
    "INSERT INTO artifacts (tenant_id, artifact_id, artifact_type, title, content, metadata, \
    created_at) VALUES ($1, '00000000-0000-4000-8000-000000000007', 'note', '', '', '{}', 0)",
);
const CHUNK: Query = Query::Text(
    "INSERT INTO chunks VALUES ($1, '00000000-0000-4000-8000-000000000007', 0, 0, 1, \
    to_tsvector('simple', 'whale'))",
);

#[tokio::test]
async fn a_search_uses_the_full_text_index_and_returns_only_rows_of_its_tenant() {
    let cluster = Cluster::start();
    let as_owner = with_owner(&cluster);
    let (postgres, _) = open(&as_owner).await;
    let mut tx = begin(&postgres, "a");
    for query in [ARTIFACT, CHUNK] {
        tx.queue(Statement::new(query, vec![]).expecting(1));
    }
    commit(tx).await.unwrap();
    let counted = "SELECT onward_word_count($1, 'whale', 9) AS n";
    let found =
        "SELECT count(*) AS n FROM onward_search($1, 'whale', 9, NULL, NULL, NULL, NULL, 9)";
    for (tenant, asked, expected) in [("a", "a", 1), ("b", "a", 0), ("b", "b", 0), ("", "", 0)] {
        let mut tx = begin(&postgres, tenant);
        for question in [found, counted] {
            let seen = number(&mut tx, Query::Text(question), params![asked])
                .await
                .unwrap();
            assert_eq!(seen, expected, "{tenant}, {asked}: {question}");
        }
        rollback(tx);
    }
    // The owner, as whom these functions run, may use the index; a tenant may not.
    let plan = "SET enable_seqscan = off; SET enable_indexscan = off; \
        EXPLAIN SELECT 1 FROM chunks WHERE words @@ to_tsquery('simple', 'whale')";
    let explained = psql(&as_owner, plan).unwrap();
    assert!(explained.contains("chunks_by_word"), "{explained}");
    let explained = psql(&as_owner, &format!("SET ROLE onward_tenant; {plan}")).unwrap();
    assert!(!explained.contains("chunks_by_word"), "{explained}");
}

/// Tables that are read across tenants, with the functions that read them. The owner is not a
/// superuser, so row security applies to the functions, too.
#[tokio::test]
async fn only_functions_read_across_tenants() {
    let cluster = Cluster::start();
    let (postgres, _) = open(&with_owner(&cluster)).await;
    let tables = [
        ("tenants", "VALUES ($1, 0, 0)", "onward_tenants()"),
        (
            "token_hashes",
            "VALUES ($1, 'h', gen_random_uuid())",
            "onward_token_of_hash('h')",
        ),
        (
            "due",
            "VALUES ($1, '00000000-0000-4000-8000-000000000007', 5)",
            "onward_due_between(0, 9, 1, 9, NULL)",
        ),
        // It stalls before its plan is due.
        (
            "steps",
            "(tenant_id, step_id, plan_id, step_order, step_type, instructions, depends_on, \
             max_attempts, status, attempt, claim_token, started_at, undelivered, superseded, \
             updated_at, open_dependencies, stalls_at) VALUES ($1, gen_random_uuid(), \
             '00000000-0000-4000-8000-000000000007', 1, 'custom', '', '[]', 1, 'in_progress', 1, \
             't', 0, 0, '[]', 0, 0, 3)",
            "onward_due_late(1, 9, NULL)",
        ),
        (
            "due_calls",
            "VALUES ($1, 's', 'h', '', 1, 1, 5)",
            "onward_due_calls_until(9, 9, NULL)",
        ),
        (
            "due_calls",
            "VALUES ($1, 't', 'h', '', 1, 1, 5)",
            "onward_due_calls_of_host('h', NULL)",
        ),
    ];
    for (table, values, function) in tables {
        let own = format!("SELECT count(*) AS n FROM {table}").leak();
        let mut tx = begin(&postgres, "b");
        let before = number(&mut tx, Query::Text(own), vec![]).await.unwrap();
        rollback(tx);
        for tenant in ["a", "b"] {
            let mut tx = begin(&postgres, tenant);
            let insert = Query::Text(format!("INSERT INTO {table} {values}").leak());
            tx.queue(Statement::new(insert, vec![]).expecting(1));
            commit(tx).await.unwrap();
        }
        let mut tx = begin(&postgres, "b");
        let seen = number(&mut tx, Query::Text(own), vec![]).await.unwrap();
        assert_eq!(seen, before + 1, "{table}");
        let change = format!("DELETE FROM {table} WHERE tenant_id = 'a'").leak();
        let change = Statement::without_tenant(Query::Text(change), vec![]);
        tx.queue(change.expecting(0));
        commit(tx).await.unwrap();
        let all: &str = format!("SELECT count(DISTINCT tenant_id) AS n FROM {function}").leak();
        // A token is found by its hash, whatever the tenant.
        let of_tenant = if table == "token_hashes" { 2 } else { 0 };
        for (tenant, tenants) in [("", 2), ("b", of_tenant)] {
            let mut tx = begin(&postgres, tenant);
            let seen = number(&mut tx, Query::Text(all), vec![]).await.unwrap();
            assert_eq!(seen, tenants, "{function}, `{tenant}`");
            rollback(tx);
        }
    }
    let mut tx = begin(&postgres, "");
    let first = Query::Text("SELECT onward_due_first(NULL) AS n");
    assert_eq!(number(&mut tx, first, vec![]).await.unwrap(), 5);
    rollback(tx);
}
