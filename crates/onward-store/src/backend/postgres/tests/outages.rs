//! Servers that are stopped, slow, disconnected, or missing.

use std::time::Instant;

use onward_core::PlanId;
use onward_testbed::psql;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

use super::*;
use crate::plan_cache::CacheSession;

#[tokio::test(flavor = "multi_thread")]
async fn reconnects_to_a_restarted_server() {
    let cluster = Cluster::start();
    let (postgres, mut watching) = open(&cluster.database()).await;
    put(&postgres, "a", "one").await.unwrap();
    let mut open_tx = begin(&postgres, "a");
    number(&mut open_tx, KEYS, params!["a"]).await.unwrap();
    let mut leader = postgres.lead("sweep").await.unwrap();
    assert!(!leader.is_lost());

    cluster.stop();
    leader.lost().await;
    assert!(leader.is_lost());
    let began = Instant::now();
    let statement = key("two");
    open_tx.queue(statement);
    assert!(matches!(
        commit(open_tx).await,
        Err(Error::Unavailable { .. })
    ));
    let rejected = put(&postgres, "a", "two").await;
    assert!(matches!(rejected, Err(Error::Unavailable { .. })));
    assert!(began.elapsed() < hosts::CONNECT);

    cluster.restart();
    assert_eq!(keys(&postgres, "a").await, 1);
    put(&postgres, "a", "two").await.unwrap();

    // The notification connection of the first backend reconnects, too.
    let (other, _) = open(postgres_url(&cluster, &postgres).as_str()).await;
    let plan = PlanId::from_u128(1);
    let received = async {
        loop {
            other.publish(vec![Changed {
                tenant: "a".into(),
                what: Subject::Plan(plan),
                seq: None,
            }]);
            if timeout(Duration::from_millis(200), watching.recv())
                .await
                .is_ok()
            {
                return;
            }
        }
    };
    timeout(Duration::from_secs(20), received).await.unwrap();
}

fn postgres_url(cluster: &Cluster, postgres: &Postgres) -> String {
    let database = postgres.0.address.shown.rsplit('/').next().unwrap();
    cluster.url(database)
}

/// A backend with few connections and short timeouts, but a long maximum wait for a batch.
pub(super) async fn scarce(url: &str) -> Postgres {
    let limits = Limits {
        connections: 2,
        wait: Duration::from_millis(50),
        response: Duration::from_millis(500),
        max_wait: Duration::from_secs(60),
    };
    let (watchers, _) = broadcast::channel(1);
    Postgres::within(limits, url, true, true, watchers)
        .await
        .unwrap()
}

/// The error of a call that finds all connections in use.
pub(super) fn exhausted(postgres: &Postgres) -> String {
    let Inner {
        address, limits, ..
    } = &*postgres.0;
    error::pool_exhausted(&address.shown, limits.connections).to_string()
}

#[tokio::test]
async fn reports_an_exhausted_pool() {
    let postgres = scarce(&Cluster::shared().database()).await;
    let mut held = [begin(&postgres, "a"), begin(&postgres, "a")];
    for held in &mut held {
        number(held, KEYS, params!["a"]).await.unwrap();
    }
    let why = put(&postgres, "a", "one").await.unwrap_err();
    assert_eq!(why.to_string(), exhausted(&postgres));
    let mut tx = begin_as(&postgres, "a".into(), Mode::Optimistic);
    tx.cache = Some(CacheSession::after_hit());
    assert!(tx.needs_revalidation());
    let asked = number(&mut tx, KEYS, params!["a"]).await;
    assert!(asked.is_err() && !tx.needs_revalidation(), "not retried");
    drop(held);
    assert_eq!(keys(&postgres, "a").await, 0);
}

#[tokio::test]
async fn limits_every_wait() {
    let postgres = scarce(&Cluster::shared().database()).await;
    let mut tx = begin(&postgres, "a");
    let sleeping = Statement::without_tenant(Query::Text("SELECT pg_sleep(60)"), vec![]);
    let why = tx.query(vec![sleeping.clone()]).await.unwrap_err();
    let expected = error::timed_out(postgres.0.limits.response).to_string();
    assert_eq!(why.to_string(), expected);
    assert!(commit(tx).await.is_err());
    assert_eq!(postgres.0.pool.size(), 0);

    let mut tx = begin(&postgres, "a");
    tx.queue(sleeping);
    let why = commit(tx).await.unwrap_err();
    assert_eq!(why.hint(), error::outcome_unknown("").hint());
    assert_eq!(postgres.0.pool.size(), 0);
}

/// A proxy to the server that can be cut in one direction: requests arrive, responses do not. It
/// closes after it has dropped the response to a commit.
pub(super) async fn wire(url: &str) -> (String, watch::Sender<bool>) {
    let (cut, is_cut) = watch::channel(false);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let place = url
        .rsplit_once('@')
        .map_or_else(|| url.trim_start_matches("postgres://"), |(_, host)| host);
    let (server, database) = place.split_once('/').unwrap();
    let through = url.replace(place, &format!("127.0.0.1:{port}/{database}"));
    let server = server.to_owned();
    tokio::spawn(async move {
        while let Ok((inside, _)) = listener.accept().await {
            let outside = TcpStream::connect(&server).await.unwrap();
            let (mut from_client, mut to_client) = inside.into_split();
            let (mut from_server, mut to_server) = outside.into_split();
            let is_cut = is_cut.clone();
            tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
            tokio::spawn(async move {
                let mut bytes = [0; 4096];
                while let Ok(read @ 1..) = from_server.read(&mut bytes).await {
                    if !*is_cut.borrow() {
                        to_client.write_all(&bytes[..read]).await.unwrap();
                    } else if bytes[..read].windows(7).any(|word| word == b"COMMIT\0") {
                        return;
                    }
                }
            });
        }
    });
    (through, cut)
}

#[tokio::test]
async fn reports_an_unknown_outcome_if_the_response_to_a_commit_is_lost() {
    let url = Cluster::shared().database();
    let (through, cut) = wire(&url).await;
    let (postgres, _) = open(&through).await;
    put(&postgres, "a", "one").await.unwrap();
    let mut tx = begin(&postgres, "a");
    number(&mut tx, KEYS, params!["a"]).await.unwrap();
    let statement = key("two").expecting(1);
    tx.queue(statement);
    cut.send(true).unwrap();
    let why = commit(tx).await.unwrap_err();
    assert!(matches!(&why, Error::Unavailable { .. }), "{why}");
    assert_eq!(why.hint(), error::outcome_unknown("").hint());
    cut.send(false).unwrap();
    assert_eq!(keys(&postgres, "a").await, 2);
}

#[tokio::test]
async fn a_terminated_connection_has_not_committed() {
    let url = Cluster::shared().database();
    let (postgres, _) = open(&url).await;
    let mut tx = begin(&postgres, "a");
    let sleeping = Statement::without_tenant(Query::Text("SELECT pg_sleep(60)"), vec![]);
    for statement in [key("one"), sleeping, key("two")] {
        tx.queue(statement);
    }
    let url = url.clone();
    let ending = tokio::task::spawn_blocking(move || {
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
            WHERE datname = current_database() AND wait_event = 'PgSleep'";
        while psql(&url, end).unwrap().trim() != "t" {}
    });
    let why = commit(tx).await.unwrap_err();
    ending.await.unwrap();
    assert!(matches!(&why, Error::Unavailable { .. }), "{why}");
    assert_ne!(why.hint(), error::outcome_unknown("").hint());
    assert_eq!(keys(&postgres, "a").await, 0);
}

#[tokio::test]
async fn names_a_missing_server_without_its_password() {
    for url in [
        "postgres://me:secret@127.0.0.1:1/onward",
        "postgres://me:secret@127.0.0.1:1/onward?sslmode=require",
    ] {
        let why = Postgres::schema(url).await.unwrap_err();
        assert!(
            matches!(&why, Error::Unavailable { why, .. } if why.contains("127.0.0.1:1")),
            "{why}"
        );
        assert!(!format!("{why:?}").contains("secret"));
        assert!(why.cause::<tokio_postgres::Error>().is_some());
    }
    // Each cause has its own next action.
    let shared = Cluster::shared().database();
    let mut hints = std::collections::BTreeSet::new();
    for wrong in [
        "postgres://localhost:port/onward".to_owned(),
        Cluster::shared().url("onward_is_not_there"),
        as_role(&shared, "onward_is_not_there"),
        format!("{shared}?target_session_attrs=standby"),
    ] {
        let why = Postgres::schema(&wrong).await.unwrap_err();
        assert!(matches!(&why, Error::Address { .. }), "{why}");
        assert!(hints.insert(why.hint()), "{why}: {}", why.hint());
    }
    let unencrypted = format!("{}?sslmode=require", Cluster::shared().database());
    let why = Postgres::schema(&unencrypted).await.unwrap_err();
    assert!(matches!(&why, Error::Unavailable { .. }), "{why}");
    assert!(why.hint().contains("sslmode=disable"), "{why}");
}

#[tokio::test]
async fn a_failed_handshake_names_the_options_for_tls() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    // It accepts TLS, and then sends something else.
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            stream.read_exact(&mut [0; 8]).await.unwrap();
            stream.write_all(&[b'S'; 64]).await.unwrap();
        }
    });
    let url = format!("postgres://me@127.0.0.1:{port}/onward?sslmode=require");
    let why = Postgres::schema(&url).await.unwrap_err();
    assert!(matches!(&why, Error::Unavailable { .. }), "{why}");
    assert!(why.hint().contains("sslrootcert"), "{why}");
}
