//! Rules that let Citus distribute the schema by tenant, checked in the catalog of a plain server.
//! Each query returns the violations. Commands run on a plain server with stubs for Citus.

use onward_testbed::{CITUS, psql, with_citus_path};

use super::*;
use crate::query::ALL;

/// Tables with a tenant.
const TENANT_TABLES: &str = "SELECT attrelid FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid \
    WHERE attname = 'tenant_id' AND relkind = 'r' AND relnamespace = 'public'::regnamespace";

async fn assert_none(rule: &str, question: &str) {
    let url = Cluster::shared().database();
    open(&url).await;
    let question = question.replace("{tenant_tables}", TENANT_TABLES);
    let found = psql(&url, &question).unwrap();
    assert_eq!(found, "", "{rule}");
}

#[tokio::test]
async fn tables_of_tenants_have_no_triggers() {
    assert_none(
        "a table with triggers cannot be distributed",
        "SELECT tgrelid::regclass, tgname FROM pg_trigger WHERE NOT tgisinternal \
         AND tgrelid IN ({tenant_tables})",
    )
    .await;
}

/// A reference to a whole row in an expression of a constraint is a variable with attribute 0.
#[tokio::test]
async fn constraints_refer_to_columns_and_not_to_rows() {
    assert_none(
        "a CHECK over a whole row cannot be created on a shard",
        "SELECT conrelid::regclass, conname FROM pg_constraint WHERE contype = 'c' \
         AND conrelid IN ({tenant_tables}) AND conbin::text LIKE '%:varattno 0 %'",
    )
    .await;
}

#[tokio::test]
async fn functions_are_not_in_the_sql_language() {
    assert_none(
        "an SQL function with parameters cannot query a distributed table",
        "SELECT proname FROM pg_proc JOIN pg_language ON pg_language.oid = prolang \
         WHERE lanname = 'sql' AND pronamespace = 'public'::regnamespace",
    )
    .await;
}

/// A function that is not volatile cannot write.
#[tokio::test]
async fn functions_across_tenants_only_read() {
    assert_none(
        "a write without a tenant runs on all nodes, with a two-phase commit",
        "SELECT proname FROM pg_proc WHERE prosecdef AND provolatile = 'v' \
         AND pronamespace = 'public'::regnamespace AND proargnames[1] IS DISTINCT FROM 'of_tenant'",
    )
    .await;
}

#[tokio::test]
async fn keys_begin_with_the_tenant() {
    assert_none(
        "a unique index cannot be enforced across shards",
        "SELECT indexrelid::regclass FROM pg_index WHERE indisunique AND indrelid IN ({tenant_tables}) \
         AND indkey[0] <> (SELECT attnum FROM pg_attribute WHERE attrelid = indrelid \
             AND attname = 'tenant_id')",
    )
    .await;
    assert_none(
        "a foreign key cannot be enforced across shards",
        "SELECT conrelid::regclass, conname FROM pg_constraint WHERE contype = 'f' \
         AND conrelid IN ({tenant_tables}) AND (conkey[1] <> (SELECT attnum FROM pg_attribute \
             WHERE attrelid = conrelid AND attname = 'tenant_id') \
         OR confkey[1] <> (SELECT attnum FROM pg_attribute WHERE attrelid = confrelid \
             AND attname = 'tenant_id'))",
    )
    .await;
}

/// `onward migrate --distribute` has a list of all tables.
#[tokio::test]
async fn every_table_of_tenants_is_distributed() {
    let url = Cluster::shared().database();
    open(&url).await;
    let question = format!("SELECT oid::regclass FROM pg_class WHERE oid IN ({TENANT_TABLES})");
    let tables = psql(&url, &question).unwrap();
    let mut tables: Vec<&str> = tables.split_whitespace().collect();
    tables.sort_unstable();
    let mut distributed = [&distribute::BY_TENANT[..], &distribute::ON_EVERY_NODE].concat();
    distributed.sort_unstable();
    assert_eq!(tables, distributed);
}

/// A statement that names its tenant runs on the node of that tenant: its first parameter is
/// compared with `tenant_id` for every table, or passed to a function. A comparison with the
/// `tenant_id` of another table is not enough: Citus runs such a subquery on all nodes.
#[tokio::test]
async fn every_statement_names_its_tenant() {
    // They read across tenants, or no table.
    let without_tenant = [
        Query::Clock,
        Query::DueCallsOfHost,
        Query::DueCallsUntil,
        Query::DueFirst,
        Query::DueLate,
        Query::DueBetween,
        Query::Obstacles,
        Query::QuickCheck,
        Query::QuickCheckBegin,
        Query::TenantsAll,
        Query::TokenOfHash,
        Query::TotalBytes,
    ];
    let url = Cluster::shared().database();
    open(&url).await;
    let question = format!("SELECT oid::regclass FROM pg_class WHERE oid IN ({TENANT_TABLES})");
    let tables = psql(&url, &question).unwrap();
    let tables: Vec<&str> = tables.split_whitespace().collect();
    let mut wrong = Vec::new();
    for query in ALL {
        let statement = Statement::without_tenant(*query, vec![]);
        let fail = merge::OnLostRace::Fail;
        let Some(text) = merge::MessageText::new(&[&statement], merge::Form::Distributed, fail)
        else {
            // For SQLite only.
            continue;
        };
        let text = &text.sql;
        let words =
            text.split(|letter: char| !(letter.is_alphanumeric() || "_$.".contains(letter)));
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let uses = words.windows(2).filter(|pair| {
            ["FROM", "JOIN", "INTO", "UPDATE", "USING"].contains(&pair[0])
                && tables.contains(&pair[1])
        });
        let names_tenant = |pair: &[&str]| pair[0].ends_with("tenant_id") && pair[1] == "$1";
        let by_tenant = words.windows(2).filter(|pair| names_tenant(pair)).count();
        let inserts = words.iter().filter(|word| **word == "INSERT").count();
        if without_tenant.contains(query) {
            if uses.count() > 0 {
                wrong.push(format!(
                    "`{}` uses a table without its tenant",
                    query.name()
                ));
            }
        } else if uses.count() > by_tenant + inserts || !text.contains("$1") {
            wrong.push(format!("`{}`: {text}", query.name()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A database with [`CITUS`] before the catalog of the server in its search path.
async fn with_citus(cluster: &Cluster) -> String {
    let url = cluster.database();
    open(&url).await;
    psql(&url, CITUS).unwrap();
    with_citus_path(&url)
}

#[tokio::test]
async fn rejects_a_move_to_a_distributed_database() {
    let url = with_citus(Cluster::shared()).await;
    let distributed = "SELECT citus.create_distributed_table('tenants', 'tenant_id', 'none')";
    psql(&url, distributed).unwrap();
    let rejected = open_target(&url).await.err();
    assert!(
        matches!(&rejected, Some(Error::Move { .. })),
        "{rejected:?}"
    );
}

/// On a distributed database, the tenant is set for the transaction: Citus forwards only such settings
/// to the nodes.
#[tokio::test]
async fn a_move_from_a_distributed_database_reads_all_tenants() {
    let url = with_citus(Cluster::shared()).await;
    let distributed = "SELECT citus.create_distributed_table('tenants', 'tenant_id', 'none')";
    psql(&url, distributed).unwrap();
    let tenant =
        "BEGIN; SET LOCAL onward.tenant = '{}'; INSERT INTO tenants VALUES ('{}', 0, 0); COMMIT";
    for name in ["a", "it's"] {
        psql(&url, &tenant.replace("{}", &name.replace('\'', "''"))).unwrap();
    }
    let mut source = open_source(&url).await.unwrap();
    let tenants = source.tenants().await.unwrap();
    let tables = source.tables().await.unwrap();
    let table = tables.iter().find(|table| table.name == "tenants").unwrap();
    let names: Vec<&str> = tenants.iter().map(|name| &**name).collect();
    assert_eq!(names, ["a", "it's"]);
    for tenant in &tenants {
        assert_eq!(source.count(table, tenant).await.unwrap(), 1);
    }
    let write = "SET lock_timeout = '100ms'; DELETE FROM tenants";
    assert!(psql(&url, write).is_err(), "the source is locked");
}

/// Runs `onward migrate` on a database with Citus, another node and this response of it.
async fn migrate_with_node(url: &str, response: &str) -> Result<Postgres, Error> {
    let node = format!(
        "DELETE FROM citus.pg_dist_node; DELETE FROM citus.responses; \
         INSERT INTO citus.pg_dist_node VALUES (1, true, 'primary'); \
         INSERT INTO citus.responses VALUES ('worker', 5432, {response})"
    );
    psql(url, &node).unwrap();
    let (watchers, _) = broadcast::channel(1);
    Postgres::connect(url, None, true, true, watchers).await
}

#[tokio::test]
async fn checks_the_nodes_before_the_first_change() {
    // A separate cluster, in which the role does not exist.
    let cluster = Cluster::start();
    let url = cluster.database();
    psql(&url, CITUS).unwrap();
    psql(
        &url,
        "CREATE ROLE plain LOGIN CREATEROLE; GRANT CREATE ON SCHEMA public TO plain; \
         GRANT USAGE ON SCHEMA citus TO plain; GRANT ALL ON ALL TABLES IN SCHEMA citus TO plain",
    )
    .unwrap();
    let path = "options=-c%20search_path%3Dpublic,citus,pg_catalog";
    let url = format!("{}?{path}", as_role(&url, "plain"));
    let created = "SELECT (SELECT count(*) FROM pg_roles WHERE rolname = 'onward_tenant') \
        + (SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace)";
    let refused = migrate_with_node(&url, "true, 'true'").await.err();
    assert!(
        matches!(&refused, Some(Error::Address { why, .. }) if why.contains("`plain`")),
        "{refused:?}"
    );
    let known = "INSERT INTO citus.pg_dist_object \
        VALUES ('pg_authid'::regclass, 'plain'::regrole)";
    psql(&url, known).unwrap();
    for response in ["false, 'connection refused'", "true, 'false'"] {
        let refused = migrate_with_node(&url, response).await.err();
        assert!(
            matches!(&refused, Some(Error::Address { why, .. }) if why.contains("`worker:5432`")),
            "{refused:?}"
        );
        assert_eq!(
            psql(&url, created).unwrap().trim(),
            "0",
            "nothing was changed"
        );
    }
    migrate_with_node(&url, "true, 'true'")
        .await
        .map(drop)
        .unwrap();
}

#[tokio::test]
async fn names_the_statement_for_a_login_that_may_not_change_roles() {
    // A separate cluster: in the shared one, another test may have changed the role.
    let cluster = Cluster::start();
    let url = with_citus(&cluster).await;
    psql(
        &url,
        "CREATE ROLE weak LOGIN; GRANT onward_tenant TO weak; GRANT USAGE ON SCHEMA citus TO weak;
         GRANT SELECT ON ALL TABLES IN SCHEMA citus TO weak",
    )
    .unwrap();
    let rejected = Postgres::distribute(&as_role(&url, "weak")).await;
    let rejected = rejected.unwrap_err();
    assert!(
        matches!(&rejected, Error::Address { why, .. } if why.contains("ALTER ROLE onward_tenant LOGIN")),
        "{rejected}"
    );
}

#[tokio::test]
async fn truncates_local_rows_after_an_interrupted_distribution() {
    // A separate cluster: the distribution changes the role of all databases.
    let cluster = Cluster::start();
    let url = with_citus(&cluster).await;
    let all = distribute::BY_TENANT.len() + distribute::ON_EVERY_NODE.len();
    for missing in [all, 0] {
        let distributed = Postgres::distribute(&url).await.unwrap();
        assert_eq!(usize::try_from(distributed).unwrap(), missing);
        let truncated = psql(&url, "SELECT count(DISTINCT name) FROM truncated").unwrap();
        assert_eq!(truncated.trim(), all.to_string());
        // As if the process had been killed after the commit.
        psql(&url, "DELETE FROM truncated").unwrap();
    }
}
