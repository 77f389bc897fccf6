//! Row security: a tenant reads and writes only its own rows, whatever the login is.

use onward_testbed::psql;

use super::*;

/// All tables with a tenant column have row security, except the three that are read across
/// tenants.
#[tokio::test]
async fn every_tenant_table_has_row_security() {
    let url = Cluster::shared().database();
    open(&url).await;
    let unguarded = psql(
        &url,
        "SELECT relname FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid \
         WHERE attname = 'tenant_id' AND relkind = 'r' AND NOT (relrowsecurity AND relforcerowsecurity) \
         ORDER BY 1",
    );
    assert_eq!(
        unguarded.unwrap().split_whitespace().collect::<Vec<_>>(),
        ["due", "due_calls", "token_hashes"]
    );
    let rights = psql(
        &url,
        "SELECT DISTINCT string_agg(privilege_type, ',' ORDER BY privilege_type) \
         FROM information_schema.role_table_grants WHERE grantee = 'onward_tenant' GROUP BY table_name",
    );
    assert_eq!(rights.unwrap().trim(), "DELETE,INSERT,SELECT,UPDATE");
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
    tx.ask(vec![]).await.unwrap();
    let smuggled = Statement::without_tenant(KEY, params!["a", "two", uuid::Uuid::nil()]);
    let why = tx.ask(vec![smuggled]).await.unwrap_err();
    assert!(
        matches!(&why, Error::Refused(message) if message.contains("row-level security")),
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
        tx.ask(vec![ownerless]).await.is_err(),
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

#[tokio::test]
async fn the_owner_of_the_tables_does_not_bypass_row_security() {
    // A separate cluster, in which the owner creates the role itself.
    let cluster = Cluster::start();
    let url = cluster.database();
    let owner = format!("owner_{}", url.rsplit('/').next().unwrap());
    psql(&url, &format!("CREATE ROLE {owner} LOGIN CREATEROLE")).unwrap();
    psql(&url, &format!("GRANT CREATE ON SCHEMA public TO {owner}")).unwrap();
    let url = as_role(&url, &owner);
    tenants_are_apart(&open(&url).await.0).await;
    let seen = psql(&url, "SELECT count(*) FROM idempotency_keys").unwrap();
    assert_eq!(seen.trim(), "0", "not even with another client");
}

/// A chunk of the tenant with one word.
const CHUNK: Query = Query::Text(
    "INSERT INTO chunks VALUES ($1, '00000000-0000-4000-8000-000000000007', 0, 0, 1, \
    to_tsvector('simple', 'whale'))",
);

#[tokio::test]
async fn a_search_uses_the_full_text_index_and_returns_only_rows_of_its_tenant() {
    let cluster = Cluster::start();
    let url = cluster.database();
    let owner = format!("owner_{}", url.rsplit('/').next().unwrap());
    psql(&url, &format!("CREATE ROLE {owner} LOGIN CREATEROLE")).unwrap();
    psql(&url, &format!("GRANT CREATE ON SCHEMA public TO {owner}")).unwrap();
    let as_owner = as_role(&url, &owner);
    let (postgres, _) = open(&as_owner).await;
    let mut tx = begin(&postgres, "a");
    tx.queue(Statement::new(CHUNK, vec![]).expecting(1));
    commit(tx).await.unwrap();
    let found = "SELECT count(*) AS n FROM onward_search('whale', 9)";
    let counted = "SELECT onward_word_count('whale', 9) AS n";
    for (tenant, expected) in [("a", 1), ("b", 0), ("", 0)] {
        let mut tx = begin(&postgres, tenant);
        for question in [found, counted] {
            let seen = number(&mut tx, Query::Text(question), vec![])
                .await
                .unwrap();
            assert_eq!(seen, expected, "{tenant}: {question}");
        }
        rollback(tx);
    }
    // The owner, as whom these functions run, may use the index; a tenant may not.
    let plan = "SET enable_seqscan = off; SET enable_indexscan = off; \
        EXPLAIN SELECT 1 FROM chunks WHERE words @@ to_tsquery('simple', 'whale')";
    let explained = psql(&as_owner, plan).unwrap();
    assert!(explained.contains("chunks_by_word"), "{explained}");
    let explained = psql(&url, &format!("SET ROLE onward_tenant; {plan}")).unwrap();
    assert!(!explained.contains("chunks_by_word"), "{explained}");
}

#[tokio::test]
async fn an_operator_reads_all_tenants_and_changes_none() {
    let postgres = fresh().await;
    let put = "INSERT INTO tenants VALUES ($1, 0, 0)";
    for tenant in ["a", "b"] {
        let mut tx = begin(&postgres, tenant);
        tx.queue(Statement::without_tenant(Query::Text(put), params![tenant]).expecting(1));
        commit(tx).await.unwrap();
    }
    let count = "SELECT count(*) AS n FROM tenants";
    let mut tx = begin(&postgres, "a");
    assert_eq!(
        number(&mut tx, Query::Text(count), vec![]).await.unwrap(),
        1
    );
    let operator = "SELECT set_config('onward.operator', 'on', true)";
    tx.ask(vec![Statement::without_tenant(
        Query::Text(operator),
        vec![],
    )])
    .await
    .unwrap();
    assert_eq!(
        number(&mut tx, Query::Text(count), vec![]).await.unwrap(),
        2
    );
    let change = "UPDATE tenants SET created_at = 1 WHERE tenant_id = $1";
    tx.queue(Statement::without_tenant(Query::Text(change), params!["b"]).expecting(0));
    commit(tx).await.unwrap();
    let mut tx = begin(&postgres, "a");
    assert_eq!(
        number(&mut tx, Query::Text(count), vec![]).await.unwrap(),
        1,
        "only in that transaction"
    );
    rollback(tx);
}
