//! The schema: how it comes about, whom it refuses, and what its own functions hold.

use onward_testbed::psql;

use super::*;
use crate::backend::postgres::batch::Batch;
use crate::sql::{self, Dialect};

#[tokio::test(flavor = "multi_thread")]
async fn many_servers_may_start_at_once_on_two_databases_of_one_cluster() {
    // One of its own, in which nobody has made the role before.
    let cluster = Cluster::start();
    let urls = [cluster.database(), cluster.database()];
    let starts: Vec<_> = (0..12)
        .map(|number| {
            let url = urls[number % 2].clone();
            tokio::spawn(async move { open(&url).await })
        })
        .collect();
    for start in starts {
        let (postgres, _) = start.await.unwrap();
        assert_eq!(keys(&postgres, "a").await, 0);
    }
    for url in &urls {
        assert_eq!(
            Postgres::schema(url).await.unwrap(),
            (migrate::VERSION, migrate::VERSION)
        );
        assert_eq!(
            psql(url, "SELECT count(*) FROM onward_schema")
                .unwrap()
                .trim(),
            migrate::VERSION.to_string(),
            "each step was taken once"
        );
    }
}

#[tokio::test]
async fn a_schema_of_another_version_is_refused() {
    let url = Cluster::shared().database();
    let refused = |may| {
        let url = url.clone();
        async move {
            let (watchers, _) = broadcast::channel(1);
            Postgres::connect(&url, may, watchers).await.err().unwrap()
        }
    };
    assert_eq!(Postgres::schema(&url).await.unwrap(), (0, migrate::VERSION));
    assert!(matches!(
        refused(false).await,
        Error::Older { found: 0, .. }
    ));
    assert_eq!(
        psql(&url, "SELECT to_regclass('onward_schema') IS NULL")
            .unwrap()
            .trim(),
        "t"
    );
    open(&url).await;
    psql(&url, "INSERT INTO onward_schema VALUES (99)").unwrap();
    assert!(matches!(
        refused(true).await,
        Error::Newer { found: 99, .. }
    ));
    assert_eq!(
        Postgres::schema(&url).await.unwrap(),
        (99, migrate::VERSION)
    );
}

#[tokio::test]
async fn a_schema_of_ones_own_may_hold_the_tables() {
    let url = Cluster::shared().database();
    psql(&url, "CREATE SCHEMA elsewhere").unwrap();
    let elsewhere = format!("{url}?options=-c%20search_path%3Delsewhere");
    let (postgres, _) = open(&elsewhere).await;
    put(&postgres, "a", "one").await.unwrap();
    assert_eq!(
        psql(&url, "SELECT count(*) FROM elsewhere.idempotency_keys")
            .unwrap()
            .trim(),
        "1"
    );
    let nowhere = format!("{url}?options=-c%20search_path%3Dnowhere");
    assert!(matches!(
        Postgres::schema(&nowhere).await,
        Err(Error::Address { .. })
    ));
}

/// A transaction is another user than the login, and `"$user"` in the search path another schema.
#[tokio::test]
async fn a_login_with_a_schema_of_its_name_has_its_tables_there() {
    let url = Cluster::shared().database();
    let login = format!("Own \\ {}", url.rsplit('/').next().unwrap());
    psql(&url, &format!("CREATE ROLE \"{login}\" LOGIN SUPERUSER")).unwrap();
    psql(&url, &format!("CREATE SCHEMA AUTHORIZATION \"{login}\"")).unwrap();
    let written = login.replace('\\', "%5C").replace(' ', "%20");
    let (postgres, _) = open(&as_role(&url, &written)).await;
    put(&postgres, "a", "one").await.unwrap();
    let found = psql(
        &url,
        &format!("SELECT count(*) FROM \"{login}\".idempotency_keys"),
    );
    assert_eq!(found.unwrap().trim(), "1");
    let mut tx = begin(&postgres, "a");
    let plan = uuid::Uuid::from_u128(7);
    let statement = tx.statement(EVENT, params![plan, 1i64]);
    tx.queue(statement.touching(1));
    let statement = tx.statement("DELETE FROM events WHERE tenant_id = $1", vec![]);
    tx.queue(statement.touching(1));
    postgres.commit(tx).await.unwrap();
}

#[tokio::test]
async fn a_login_without_the_rights_is_told_what_is_missing() {
    let url = Cluster::shared().database();
    open(&url).await;
    let weak = format!("weak_{}", url.rsplit('/').next().unwrap());
    psql(
        &url,
        &format!("CREATE ROLE {weak} LOGIN; GRANT SELECT ON onward_schema TO {weak}"),
    )
    .unwrap();
    let (watchers, _) = broadcast::channel(1);
    let why = Postgres::connect(&as_role(&url, &weak), true, watchers)
        .await
        .err()
        .unwrap();
    assert!(
        matches!(&why, Error::Address { why, .. } if why.contains("onward_tenant")),
        "{why}"
    );
}

/// Every name in the query files.
fn names() -> Vec<&'static str> {
    let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/query")).unwrap();
    let files = folder.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    let texts: String = files.collect();
    let texts: &'static str = texts.leak();
    let heads = texts.split("-- name: ").skip(1);
    heads
        .filter_map(|head| head.split_whitespace().next())
        // Some are for files alone.
        .filter(|name| !sql::text(name, Dialect::Postgres).is_empty())
        .collect()
}

#[tokio::test]
async fn every_statement_is_known_to_the_server_and_takes_what_we_have() {
    let postgres = fresh().await;
    let held = postgres.0.pool.get().await.unwrap();
    let client = &held.client;
    let mut wrong = Vec::new();
    assert!(names().len() > 50);
    for name in names() {
        for statement in [
            Statement::outside(name, vec![]),
            Statement::outside(name, vec![]).touching(1),
        ] {
            if let Err(why) = Batch::prepare(client, &[&statement]).await {
                wrong.push(why.to_string());
            }
        }
        let text = sql::text(name, Dialect::Postgres);
        let Ok(plan) = client.prepare(text).await else {
            continue;
        };
        let columns = plan.columns().iter().map(|column| column.type_());
        for kind in plan.params().iter().chain(columns) {
            if !["int8", "text", "uuid", "float8", "bytea"].contains(&kind.name()) {
                wrong.push(format!("`{name}` has a value of type `{kind}`"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn the_audit_trail_takes_no_update_and_goes_only_with_its_plan() {
    let url = Cluster::shared().database();
    let (postgres, _) = open(&url).await;
    let plan = uuid::Uuid::from_u128(7);
    let mut tx = begin(&postgres, "a");
    for statement in [
        tx.statement(PLAN, params![plan]),
        tx.statement(EVENT, params![plan, 1i64]),
    ] {
        tx.queue(statement.touching(1));
    }
    postgres.commit(tx).await.unwrap();
    for (change, expected) in [
        (
            "UPDATE events SET actor = 'b' WHERE tenant_id = $1",
            "takes no update",
        ),
        ("DELETE FROM events WHERE tenant_id = $1", "takes no delete"),
    ] {
        let mut tx = begin(&postgres, "a");
        let statement = tx.statement(change, vec![]).touching(1);
        tx.queue(statement);
        let why = postgres.commit(tx).await.unwrap_err().to_string();
        assert!(why.contains(expected), "{why}");
    }
    let why = psql(&url, "TRUNCATE events").unwrap_err();
    assert!(why.contains("takes no truncate"), "{why}");
    let why = psql(&url, "DELETE FROM events").unwrap_err();
    assert!(
        why.contains("takes no delete"),
        "a superuser neither: {why}"
    );

    let mut tx = begin(&postgres, "a");
    for change in [
        "DELETE FROM plans WHERE tenant_id = $1",
        "DELETE FROM events WHERE tenant_id = $1",
    ] {
        let statement = tx.statement(change, vec![]).touching(1);
        tx.queue(statement);
    }
    postgres.commit(tx).await.unwrap();
}
