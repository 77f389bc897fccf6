//! The schema: its creation, the logins it rejects, and its own functions.

use onward_testbed::psql;

use super::merge::OnLostRace;
use super::*;
use crate::backend::postgres::address::Address;
use crate::backend::postgres::message::Messages;
use crate::query::{ALL, Dialect};

#[tokio::test(flavor = "multi_thread")]
async fn servers_can_start_concurrently_on_two_databases_of_one_cluster() {
    // A separate cluster, in which the role does not exist yet.
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
            "each migration ran once"
        );
    }
}

#[tokio::test]
async fn rejects_a_schema_of_another_version() {
    let url = Cluster::shared().database();
    let rejected = |allowed| {
        let url = url.clone();
        async move {
            let (watchers, _) = broadcast::channel(1);
            Postgres::connect(&url, None, allowed, true, watchers)
                .await
                .err()
                .unwrap()
        }
    };
    assert_eq!(Postgres::schema(&url).await.unwrap(), (0, migrate::VERSION));
    assert!(matches!(
        rejected(false).await,
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
        rejected(true).await,
        Error::Newer { found: 99, .. }
    ));
    assert_eq!(
        Postgres::schema(&url).await.unwrap(),
        (99, migrate::VERSION)
    );
}

/// A migration that follows the latest one.
const NEXT: &str = "CREATE TABLE next (tenant_id text PRIMARY KEY)";

/// Migrates with the steps of a program that is one version newer.
async fn migrate_to_next(url: &str) -> Result<(), Error> {
    let steps: Vec<&str> = migrate::STEPS.into_iter().chain([NEXT]).collect();
    let address = Address::parse(url)?;
    let connection = address.open_long_lived().await?;
    let schemas = migrate::check_server(&connection.client, &address.shown).await?;
    migrate::migrate_with(&steps, &connection.client, &address, &schemas, true).await
}

#[tokio::test]
async fn a_newer_program_migrates_and_an_older_one_rejects_the_result() {
    let url = Cluster::shared().database();
    let (postgres, _) = open(&url).await;
    put(&postgres, "a", "one").await.unwrap();
    migrate_to_next(&url).await.unwrap();
    migrate_to_next(&url).await.unwrap();
    let latest = migrate::VERSION;
    assert_eq!(Postgres::schema(&url).await.unwrap(), (latest + 1, latest));
    let count = psql(&url, "SELECT count(*) FROM idempotency_keys");
    assert_eq!(count.unwrap().trim(), "1");
    let (watchers, _) = broadcast::channel(1);
    let rejected = Postgres::connect(&url, None, true, true, watchers).await;
    let Err(Error::Newer { found, known }) = rejected.map(|_| ()) else {
        panic!("the newer schema was accepted")
    };
    assert_eq!((found, known), (latest + 1, latest));
}

#[tokio::test]
async fn lists_the_versions_of_connected_programs() {
    let url = Cluster::shared().database();
    let (postgres, _) = open(&url).await;
    let own = env!("CARGO_PKG_VERSION");
    assert_eq!(postgres.versions().await.unwrap(), [own]);
    let other = Address::parse(&format!("{url}?application_name=onward%209.9.9")).unwrap();
    let connection = other.open_long_lived().await.unwrap();
    assert_eq!(postgres.versions().await.unwrap(), [own, "9.9.9"]);
    drop(connection);
}

#[tokio::test]
async fn supports_tables_outside_the_public_schema() {
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
    let missing = format!("{url}?options=-c%20search_path%3Dnowhere");
    assert!(matches!(
        Postgres::schema(&missing).await,
        Err(Error::Address { .. })
    ));
}

/// The role of a transaction is not the login, so `"$user"` in the search path is another schema.
#[tokio::test]
async fn supports_a_schema_named_after_the_login() {
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
    let statement = Statement::new(EVENT, params![plan, 1i64]);
    tx.queue(statement.expecting(1));
    // A function of the schema.
    tx.queue(Statement::new(Query::EventsDelete, params![plan]));
    commit(tx).await.unwrap();
}

#[tokio::test]
async fn names_the_role_that_a_login_may_not_assume() {
    let url = Cluster::shared().database();
    open(&url).await;
    let weak = format!("weak_{}", url.rsplit('/').next().unwrap());
    psql(
        &url,
        &format!("CREATE ROLE {weak} LOGIN; GRANT SELECT ON onward_schema TO {weak}"),
    )
    .unwrap();
    let (watchers, _) = broadcast::channel(1);
    let why = Postgres::connect(&as_role(&url, &weak), None, true, true, watchers)
        .await
        .err()
        .unwrap();
    assert!(
        matches!(&why, Error::Address { why, .. } if why.contains("onward_tenant")),
        "{why}"
    );
}

#[tokio::test]
async fn every_statement_can_be_prepared_and_uses_supported_types() {
    let postgres = fresh().await;
    let held = postgres.0.pool.get().await.unwrap();
    let client = &held.client;
    let mut wrong = Vec::new();
    for query in ALL {
        let text = query.text(Dialect::Postgres);
        if text.is_none() && query.row_change().is_none() {
            // For SQLite only.
            continue;
        }
        let statement = Statement::without_tenant(*query, vec![]);
        let checking = statement.clone().checking_version();
        let is_version = matches!(query, Query::PlanMove | Query::PlanNote);
        let checking = is_version.then_some((&checking, OnLostRace::SkipLocked, false));
        let forms = [
            (&statement, OnLostRace::Fail, false),
            (&statement, OnLostRace::Fail, true),
        ];
        for (statement, on_lost_race, distributed) in forms.into_iter().chain(checking) {
            let statements = [statement];
            let prepared = Messages::prepare(&held, &statements, distributed, on_lost_race).await;
            wrong.extend(prepared.err().map(|why| why.to_string()));
        }
        let Some(text) = text else { continue };
        let Ok(plan) = client.prepare(text).await else {
            continue;
        };
        let columns = plan.columns().iter().map(|column| column.type_());
        for kind in plan.params().iter().chain(columns) {
            if !["int8", "text", "uuid", "float8", "bytea"].contains(&kind.name()) {
                wrong.push(format!("`{}` has a value of type `{kind}`", query.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn the_audit_trail_is_append_only_and_deleted_only_with_its_plan() {
    let postgres = fresh().await;
    let plan = uuid::Uuid::from_u128(7);
    let mut tx = begin(&postgres, "a");
    for statement in [
        Statement::new(PLAN, params![plan]),
        Statement::new(EVENT, params![plan, 1i64]),
    ] {
        tx.queue(statement.expecting(1));
    }
    commit(tx).await.unwrap();
    let of_tenant = Query::Text("SELECT count(*) AS n FROM events WHERE tenant_id = $1");
    for (change, code) in [
        (
            "UPDATE events SET actor = 'b' WHERE tenant_id = $1",
            "42501",
        ),
        ("DELETE FROM events WHERE tenant_id = $1", "42501"),
        ("TRUNCATE events", "42501"),
        (
            "SELECT onward_delete_events($1, '00000000-0000-0000-0000-000000000007')",
            "23001",
        ),
    ] {
        let mut tx = begin(&postgres, "a");
        let params = if change.contains("$1") {
            params!["a"]
        } else {
            vec![]
        };
        let change = Statement::without_tenant(Query::Text(change), params);
        let why = tx.query(vec![change]).await.unwrap_err().to_string();
        assert!(why.contains(code), "{why}");
        rollback(tx);
    }

    // Another tenant deletes nothing.
    let mut tx = begin(&postgres, "b");
    let foreign = Statement::without_tenant(Query::EventsDelete, params!["a", plan]);
    tx.query(vec![foreign]).await.unwrap();
    commit(tx).await.unwrap();

    let mut tx = begin(&postgres, "a");
    assert_eq!(number(&mut tx, of_tenant, params!["a"]).await.unwrap(), 1);
    tx.queue(Statement::new(Query::PlanDelete, params![plan]).expecting(1));
    tx.queue(Statement::new(Query::EventsDelete, params![plan]));
    assert_eq!(number(&mut tx, of_tenant, params!["a"]).await.unwrap(), 0);
    commit(tx).await.unwrap();
}

/// The search path of a function that runs as its owner ends with the schema of temporary objects,
/// which would otherwise come first.
#[tokio::test]
async fn temporary_objects_cannot_replace_the_tables_of_a_function() {
    let url = Cluster::shared().database();
    open(&url).await;
    let unsafe_functions = "SELECT proname FROM pg_proc WHERE prosecdef \
        AND pronamespace = 'public'::regnamespace \
        AND NOT coalesce(array_to_string(proconfig, ' ') ~ 'search_path=public, pg_temp', false)";
    assert_eq!(psql(&url, unsafe_functions).unwrap(), "");
}

#[tokio::test]
async fn rejects_a_server_whose_advisory_locks_have_no_effect() {
    let url = Cluster::shared().database();
    // As on CockroachDB: every session gets every lock.
    let without_locks = "CREATE SCHEMA no_locks; \
        CREATE FUNCTION no_locks.pg_advisory_xact_lock(bigint) RETURNS void \
            LANGUAGE sql AS 'SELECT'; \
        CREATE FUNCTION no_locks.pg_try_advisory_xact_lock(bigint) RETURNS boolean \
            LANGUAGE sql AS 'SELECT true'";
    psql(&url, without_locks).unwrap();
    let path = "options=-c%20search_path%3Dno_locks,public,pg_catalog";
    let (watchers, _) = broadcast::channel(1);
    let migrated = Postgres::connect(&format!("{url}?{path}"), None, true, true, watchers).await;
    assert!(matches!(migrated.err(), Some(Error::Address { .. })));
    let tables = "SELECT to_regclass('no_locks.onward_schema') IS NULL";
    assert_eq!(psql(&url, tables).unwrap().trim(), "t");
}
