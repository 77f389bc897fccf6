//! PgBouncer between this process and the server.

use onward_testbed::{Pooler, psql};

use super::*;

/// A database of the shared cluster, and its name.
fn database() -> (String, String) {
    let url = Cluster::shared().database();
    let name = url.rsplit('/').next().unwrap();
    let name = name.split('?').next().unwrap().to_owned();
    (url, name)
}

async fn connect(url: &str) -> Result<Postgres, Error> {
    let (watchers, _) = broadcast::channel(1);
    Postgres::connect(url, None, true, true, watchers).await
}

/// The role and the timeouts of a transaction.
async fn session(postgres: &Postgres) -> (String, String, String) {
    let mut tx = begin(postgres, "a");
    let query = Query::Text(
        "SELECT current_user::text AS role, current_setting('lock_timeout') AS lock, \
         current_setting('statement_timeout') AS statement",
    );
    let rows = tx
        .query(vec![Statement::without_tenant(query, vec![])])
        .await;
    let row = rows.unwrap().into_iter().flatten().next().unwrap();
    let mut cells = row.cells("t");
    let mut text = |name| cells.text(name).unwrap().to_string();
    let found = (text("role"), text("lock"), text("statement"));
    rollback(tx);
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_in_session_mode_keeps_role_and_timeouts() {
    let (direct, name) = database();
    // The usual workaround for rejected options makes PgBouncer drop them silently.
    for settings in [&[][..], &["ignore_startup_parameters = options"]] {
        let pooler = Pooler::start(
            Cluster::shared(),
            &[&["pool_mode = session"], settings].concat(),
        );
        let postgres = connect(&pooler.url(&name)).await.unwrap();
        let expected = ["onward_tenant", "10s", "30s"].map(str::to_owned);
        assert_eq!(session(&postgres).await, expected.clone().into());
        let before = keys(&postgres, "a").await;
        put(&postgres, "a", &format!("key {before}")).await.unwrap();
        assert_eq!(keys(&postgres, "a").await, before + 1);
        assert_eq!(keys(&postgres, "b").await, 0);
        let mut tx = begin(&postgres, "b");
        let all = number(&mut tx, ALL_KEYS, params![]).await.unwrap();
        assert_eq!(all, 0, "row security applies to a superuser login");
        rollback(tx);
    }
    let (postgres, _) = open(&direct).await;
    assert_eq!(keys(&postgres, "a").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_pooler_in_transaction_mode() {
    let (direct, name) = database();
    open(&direct).await;
    for settings in [
        &["pool_mode = transaction"][..],
        &[
            "pool_mode = transaction",
            "ignore_startup_parameters = options",
        ],
        &["pool_mode = transaction", "default_pool_size = 1"],
        &["pool_mode = statement"],
    ] {
        let pooler = Pooler::start(Cluster::shared(), settings);
        let url = pooler.url(&name);
        let expected = error::pooler(&displayed(&url)).to_string();
        for _ in 0..3 {
            let refused = connect(&url).await.err().unwrap();
            assert_eq!(refused.to_string(), expected, "{settings:?}");
        }
        assert!(Postgres::schema(&url).await.is_err());
    }
}

/// A pooler that was in session mode at the start, and assigns another server connection later.
#[tokio::test(flavor = "multi_thread")]
async fn rejects_transactions_on_another_server_process() {
    let (direct, name) = database();
    let pooler = Pooler::start(Cluster::shared(), &["pool_mode = session"]);
    let postgres = connect(&pooler.url(&name)).await.unwrap();
    put(&postgres, "a", "one").await.unwrap();
    let mut client = postgres.acquire().await.unwrap();
    let process = client.process.unwrap();
    client.process = Some(process + 1);
    drop(client);
    let refused = put(&postgres, "a", "two").await.unwrap_err();
    let expected = error::pooler(&postgres.0.address.shown).to_string();
    assert_eq!(refused.to_string(), expected);
    assert_eq!(
        psql(&direct, "SELECT count(*) FROM idempotency_keys")
            .unwrap()
            .trim(),
        "1"
    );
    // That connection was closed.
    assert_eq!(keys(&postgres, "a").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_check_fails_while_a_pooler_is_in_another_mode() {
    let (_, name) = database();
    let settings = ["pool_mode = session", "admin_users = postgres"];
    let pooler = Pooler::start(Cluster::shared(), &settings);
    let postgres = connect(&pooler.url(&name)).await.unwrap();
    postgres.check_pooler().await.unwrap();
    let console = pooler.url("pgbouncer");
    psql(&console, "SET pool_mode = 'transaction'").unwrap();
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    loop {
        let calls = (0..8).map(|_| {
            let postgres = postgres.clone();
            tokio::spawn(async move {
                let mut tx = begin(&postgres, "a");
                let found = number(&mut tx, KEYS, params!["a"]).await;
                rollback(tx);
                found.is_err()
            })
        });
        let mut has_failed = false;
        for call in calls.collect::<Vec<_>>() {
            has_failed |= call.await.unwrap();
        }
        if has_failed {
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "no call failed");
    }
    for _ in 0..3 {
        assert!(postgres.check_pooler().await.is_err());
    }
    psql(&console, "SET pool_mode = 'session'").unwrap();
    postgres.check_pooler().await.unwrap();
}
