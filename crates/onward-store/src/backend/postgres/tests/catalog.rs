//! The comparison of the schema with the migrations.

use std::path::Path;

use onward_testbed::{golden, psql};

use super::super::catalog;
use super::*;
use crate::backend::postgres::address::Address;
use crate::schema_check::{SchemaDeviation, SchemaDifference};

#[tokio::test]
async fn the_recorded_catalog_is_that_of_a_migrated_database() {
    let postgres = fresh().await;
    let connection = postgres.0.address.open_long_lived().await.unwrap();
    let rows = connection.client.query(&catalog::objects_sql(), &[]).await;
    let lines = rows.unwrap().into_iter().map(|row| {
        let cells: [String; 3] = [row.get(0), row.get(1), row.get(2)];
        cells.join("\t") + "\n"
    });
    let lines: Vec<String> = lines.collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations/postgres/catalog.txt");
    golden::assert_matches(path, &lines.concat());
}

/// The kinds and names of the objects that differ after a change, which is then rolled back.
async fn after(postgres: &Postgres, change: &str) -> Vec<(String, String, SchemaDifference)> {
    let connection = postgres.0.address.open_long_lived().await.unwrap();
    let client = &connection.client;
    client.batch_execute("BEGIN").await.unwrap();
    client.batch_execute(change).await.unwrap();
    let found = catalog::deviations(client).await.unwrap();
    let parts = |one: SchemaDeviation| (one.kind, one.name, one.difference);
    found.into_iter().map(parts).collect()
}

#[tokio::test]
async fn reports_each_lost_protection_and_each_missing_object() {
    let url = Cluster::shared().database();
    let (postgres, _) = open(&url).await;
    assert_eq!(postgres.schema_deviations().await.unwrap(), []);
    for (change, kind, name) in [
        (
            "ALTER TABLE plans DISABLE ROW LEVEL SECURITY",
            "row security",
            "plans",
        ),
        (
            "ALTER TABLE steps NO FORCE ROW LEVEL SECURITY",
            "row security",
            "steps",
        ),
        (
            "CREATE POLICY leak ON plans USING (true)",
            "policy",
            "plans.leak",
        ),
        (
            "ALTER POLICY own_tenant ON tasks USING (true)",
            "policy",
            "tasks.own_tenant",
        ),
        (
            "DROP POLICY own_tenant ON events",
            "policy",
            "events.own_tenant",
        ),
        (
            "GRANT UPDATE ON events TO onward_tenant",
            "privileges",
            "onward_tenant on events",
        ),
        (
            "GRANT UPDATE (actor) ON events TO onward_tenant",
            "privileges",
            "onward_tenant on events",
        ),
        (
            "GRANT DELETE ON events TO PUBLIC",
            "privileges",
            "onward_tenant on events",
        ),
        (
            "REVOKE INSERT ON plans FROM onward_tenant",
            "privileges",
            "onward_tenant on plans",
        ),
        ("DROP INDEX steps_ready", "index", "steps_ready"),
        (
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'due_by_time'::regclass",
            "index",
            "due_by_time",
        ),
        (
            "DROP INDEX due_by_time; CREATE INDEX due_by_time ON due (plan_id)",
            "index",
            "due_by_time",
        ),
        (
            "ALTER TABLE steps DROP CONSTRAINT steps_state",
            "constraint",
            "steps.steps_state",
        ),
        (
            "ALTER DOMAIN onward_count DROP CONSTRAINT onward_count_check",
            "domain",
            "onward_count",
        ),
        (
            "ALTER TABLE plans ALTER COLUMN name DROP NOT NULL",
            "column",
            "plans.name",
        ),
        (
            "DROP FUNCTION onward_due_first",
            "function",
            "onward_due_first(node bigint)",
        ),
        (
            "GRANT EXECUTE ON FUNCTION onward_tenants TO PUBLIC",
            "function",
            "onward_tenants(node bigint)",
        ),
        (
            "ALTER FUNCTION onward_due_first SECURITY INVOKER",
            "function",
            "onward_due_first(node bigint)",
        ),
        (
            "CREATE OR REPLACE FUNCTION onward_outdated(statement text) RETURNS bigint \
             LANGUAGE plpgsql AS $$ BEGIN RETURN 0; END; $$",
            "function",
            "onward_outdated(statement text)",
        ),
    ] {
        let found = after(&postgres, change).await;
        assert!(
            matches!(&found[..], [(a, b, _)] if (a.as_str(), b.as_str()) == (kind, name)),
            "{change}: {found:?}"
        );
    }
    let found = after(&postgres, "DROP TABLE notices").await;
    let table = |one: &(String, String, SchemaDifference)| one.0 == "table" && one.1 == "notices";
    assert!(found.iter().any(table), "{found:?}");
    assert_eq!(
        after(&postgres, "CREATE INDEX own ON plans (name)").await,
        [],
        "an administrator may add an index"
    );
}

/// The owner of the tables and the schema have other names, and the login may create nothing.
#[tokio::test]
async fn a_login_without_privileges_finds_no_deviation_in_another_schema() {
    let url = Cluster::shared().database();
    psql(&url, "CREATE SCHEMA own").unwrap();
    let in_schema = "options=-c%20search_path%3Down";
    open(&format!("{url}?{in_schema}")).await;
    let role = format!("reader_{}", url.rsplit('/').next().unwrap());
    psql(
        &url,
        &format!(
            "CREATE ROLE {role} LOGIN; GRANT onward_tenant TO {role}; GRANT USAGE ON SCHEMA own TO {role}"
        ),
    )
    .unwrap();
    let address = Address::parse(&format!("{}?{in_schema}", as_role(&url, &role))).unwrap();
    let connection = address.open_long_lived().await.unwrap();
    assert_eq!(catalog::deviations(&connection.client).await.unwrap(), []);
}
