//! Servers that are down, slow, cut off, or not there.

use std::time::Instant;

use onward_core::PlanId;
use onward_testbed::psql;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_comes_back_is_found_again() {
    let cluster = Cluster::start();
    let (postgres, mut watching) = open(&cluster.database()).await;
    put(&postgres, "a", "one").await.unwrap();
    let mut open_one = begin(&postgres, "a");
    number(&mut open_one, KEYS, params!["a"]).await.unwrap();
    let mut leader = postgres.lead(Lead::Sweep).await.unwrap();
    assert!(!leader.is_lost());

    cluster.stop();
    leader.lost().await;
    assert!(leader.is_lost());
    let began = Instant::now();
    let statement = key(&open_one, "two");
    open_one.queue(statement);
    assert!(matches!(
        postgres.commit(open_one).await,
        Err(Error::Unavailable { .. })
    ));
    let refused = put(&postgres, "a", "two").await;
    assert!(matches!(refused, Err(Error::Unavailable { .. })));
    assert!(began.elapsed() < address::CONNECT);

    cluster.restart();
    assert_eq!(keys(&postgres, "a").await, 1);
    put(&postgres, "a", "two").await.unwrap();

    // The other ear reconnects by itself, too.
    let (other, _) = open(postgres_url(&cluster, &postgres).as_str()).await;
    let plan = PlanId::from_u128(1);
    let heard = async {
        loop {
            other.tell(vec![Changed {
                tenant: "a".into(),
                what: Subject::Plan(plan),
            }]);
            if timeout(Duration::from_millis(200), watching.recv())
                .await
                .is_ok()
            {
                return;
            }
        }
    };
    timeout(Duration::from_secs(20), heard).await.unwrap();
}

fn postgres_url(cluster: &Cluster, postgres: &Postgres) -> String {
    let database = postgres.0.address.shown.rsplit('/').next().unwrap();
    cluster.url(database)
}

/// Little of everything but patience with each other.
pub(super) async fn scarce(url: &str) -> Postgres {
    let limits = Limits {
        connections: 2,
        wait: Duration::from_millis(50),
        answer: Duration::from_millis(500),
        company: Duration::from_secs(60),
    };
    let (watchers, _) = broadcast::channel(1);
    Postgres::within(limits, url, true, watchers).await.unwrap()
}

#[tokio::test]
async fn a_pool_that_is_all_in_use_says_so() {
    let postgres = scarce(&Cluster::shared().database()).await;
    let mut held = [begin(&postgres, "a"), begin(&postgres, "a")];
    for held in &mut held {
        number(held, KEYS, params!["a"]).await.unwrap();
    }
    let why = put(&postgres, "a", "one").await.unwrap_err();
    assert!(
        matches!(&why, Error::Unavailable { why, .. } if why.contains("in use")),
        "{why}"
    );
    let mut tx = postgres.begin("a".into(), Faults::default(), Kind::Advancing);
    tx.from_memory = true;
    assert!(tx.is_doubtful());
    let asked = number(&mut tx, KEYS, params!["a"]).await;
    assert!(asked.is_err() && !tx.is_doubtful(), "it is not tried again");
    drop(held);
    assert_eq!(keys(&postgres, "a").await, 0);
}

#[tokio::test]
async fn nobody_waits_for_ever() {
    let postgres = scarce(&Cluster::shared().database()).await;
    let mut tx = begin(&postgres, "a");
    let sleeping = Statement::outside("SELECT pg_sleep(60)", vec![]);
    let why = tx.ask(vec![sleeping.clone()]).await.unwrap_err();
    assert!(
        matches!(&why, Error::Unavailable { why, .. } if why.contains("no answer")),
        "{why}"
    );
    assert!(postgres.commit(tx).await.is_err());
    assert_eq!(postgres.0.pool.status().size, 0);

    let mut tx = begin(&postgres, "a");
    tx.queue(sleeping);
    let why = postgres.commit(tx).await.unwrap_err();
    assert!(why.hint().contains("not known"), "{why}");
    assert_eq!(postgres.0.pool.status().size, 0);
}

/// A way to the server that can be cut in one direction: what is sent arrives, no answer does. It
/// closes when it has swallowed the answer to a commit.
pub(super) async fn wire(url: &str) -> (String, watch::Sender<bool>) {
    let (cut, is_cut) = watch::channel(false);
    let door = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = door.local_addr().unwrap().port();
    let place = url
        .rsplit_once('@')
        .map_or_else(|| url.trim_start_matches("postgres://"), |it| it.1);
    let (server, database) = place.split_once('/').unwrap();
    let through = url.replace(place, &format!("127.0.0.1:{port}/{database}"));
    let server = server.to_owned();
    tokio::spawn(async move {
        while let Ok((inside, _)) = door.accept().await {
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
async fn a_commit_whose_answer_is_lost_may_have_been_made() {
    let url = Cluster::shared().database();
    let (through, cut) = wire(&url).await;
    let (postgres, _) = open(&through).await;
    put(&postgres, "a", "one").await.unwrap();
    let mut tx = begin(&postgres, "a");
    number(&mut tx, KEYS, params!["a"]).await.unwrap();
    let statement = key(&tx, "two").touching(1);
    tx.queue(statement);
    cut.send(true).unwrap();
    let why = postgres.commit(tx).await.unwrap_err();
    assert!(matches!(&why, Error::Unavailable { .. }), "{why}");
    assert!(why.hint().contains("not known"), "{}", why.hint());
    cut.send(false).unwrap();
    assert_eq!(keys(&postgres, "a").await, 2);
}

#[tokio::test]
async fn a_server_that_ends_a_connection_has_not_committed() {
    let url = Cluster::shared().database();
    let (postgres, _) = open(&url).await;
    let mut tx = begin(&postgres, "a");
    let sleeping = Statement::outside("SELECT pg_sleep(60)", vec![]);
    for statement in [key(&tx, "one"), sleeping, key(&tx, "two")] {
        tx.queue(statement);
    }
    let url = url.clone();
    let ending = tokio::task::spawn_blocking(move || {
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
            WHERE datname = current_database() AND wait_event = 'PgSleep'";
        while psql(&url, end).unwrap().trim() != "t" {}
    });
    let why = postgres.commit(tx).await.unwrap_err();
    ending.await.unwrap();
    assert!(why.hint().contains("can be sent again"), "{why}");
    assert_eq!(keys(&postgres, "a").await, 0);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_without_the_password() {
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
    }
    let nowhere = Cluster::shared().url("onward_is_not_there");
    assert!(matches!(
        Postgres::schema(&nowhere).await,
        Err(Error::Address { .. })
    ));
    let unencrypted = format!("{}?sslmode=require", Cluster::shared().database());
    let why = Postgres::schema(&unencrypted).await.unwrap_err();
    assert!(why.hint().contains("sslmode=disable"), "{why}");
}
