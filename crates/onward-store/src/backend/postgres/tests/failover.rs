//! Several hosts, of which some do not respond, and a server that accepts few connections.

use std::net::SocketAddr;
use std::time::Instant;

use onward_testbed::psql;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use super::*;

/// A host that drops every packet of a new connection: its backlog is full.
async fn silent_host() -> (SocketAddr, Vec<TcpStream>) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    // It never accepts a connection; the test ends before the process does.
    std::mem::forget(listener);
    let mut held = Vec::new();
    while let Ok(connected) = timeout(Duration::from_millis(300), TcpStream::connect(address)).await
    {
        held.push(connected.unwrap());
    }
    (address, held)
}

/// The URL with another host before its own.
fn behind(url: &str, first: &str) -> String {
    let place = url.rsplit(['@', '/']).nth(1).unwrap();
    url.replacen(place, &format!("{first},{place}"), 1)
}

#[tokio::test]
async fn uses_the_second_host_if_the_first_is_silent() {
    let url = Cluster::shared().database();
    let (dropping, _held) = silent_host().await;
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    for first in [dropping, mute.local_addr().unwrap()] {
        let url = behind(&url, &first.to_string());
        let began = Instant::now();
        let (postgres, _) = open(&url).await;
        keys(&postgres, "a").await;
        let outage = began.elapsed();
        assert!(outage < Duration::from_secs(5), "{outage:?}");
    }
    let url = behind(&url, &dropping.to_string());
    let began = Instant::now();
    let joint = if url.contains('?') { '&' } else { '?' };
    open(&format!("{url}{joint}connect_timeout=1")).await;
    let outage = began.elapsed();
    assert!(outage < Duration::from_secs(2), "{outage:?}");
}

#[tokio::test]
async fn rejects_a_read_only_host_unless_any_is_accepted() {
    let url = Cluster::shared().database();
    open(&url).await;
    let read_only = "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET \
        default_transaction_read_only = on', current_database()); END $$";
    psql(&url, read_only).unwrap();
    let joint = if url.contains('?') { '&' } else { '?' };
    let with = |attrs| format!("{url}{joint}target_session_attrs={attrs}");
    let refused = Postgres::schema(&with("read-write")).await.unwrap_err();
    assert!(matches!(refused, Error::Unavailable { .. }), "{refused}");
    Postgres::schema(&with("primary")).await.unwrap();
    Postgres::schema(&with("any")).await.unwrap();
    Postgres::schema(&url).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_for_its_connections_if_the_server_accepts_no_more() {
    let url = Cluster::shared().database();
    open(&url).await;
    let name = url.rsplit('/').next().unwrap();
    let role = format!("limited_{}", name.split('?').next().unwrap());
    // One connection listens, two serve transactions.
    let create = format!(
        "CREATE ROLE {role} LOGIN CONNECTION LIMIT 3; GRANT onward_tenant TO {role}; \
         GRANT SELECT ON onward_schema TO {role}"
    );
    psql(&url, &create).unwrap();
    let (postgres, _) = open(&as_role(&url, &role)).await;
    let calls = (0..64).map(|number| {
        let postgres = postgres.clone();
        tokio::spawn(async move { put(&postgres, "a", &format!("key {number}")).await })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap().unwrap();
    }
    assert_eq!(postgres.0.pool.size(), 2);
    assert_eq!(keys(&postgres, "a").await, 64);
    drop(postgres);
    let gone = format!("SELECT count(*) FROM pg_stat_activity WHERE usename = '{role}'");
    while psql(&url, &gone).unwrap().trim() != "0" {
        tokio::task::yield_now().await;
    }
    psql(&url, &format!("DROP OWNED BY {role}; DROP ROLE {role}")).unwrap();
}

/// The URL of a database on several clusters.
fn on_all(clusters: [&Cluster; 2]) -> String {
    let [first, second] = clusters.map(|cluster| cluster.url("postgres"));
    let place = first.rsplit(['@', '/']).nth(1).unwrap().to_owned();
    behind(&second, &place)
}

/// The timeline of the server that a connection of the pool uses.
async fn timeline(postgres: &Postgres) -> i32 {
    let held = postgres.acquire().await.unwrap();
    let query = "SELECT timeline_id FROM pg_control_checkpoint()";
    held.client.query_one(query, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn refuses_a_former_primary_that_accepts_writes() {
    let former = Cluster::start();
    open(&former.url("postgres")).await;
    let primary = former.promoted_copy();
    for clusters in [[&former, &primary], [&primary, &former]] {
        let url = on_all(clusters);
        let (postgres, _) = open(&url).await;
        assert_eq!(timeline(&postgres).await, 2);
        let hosts = Postgres::hosts(&url).await.unwrap();
        assert!(hosts.several_primaries, "{hosts:?}");
    }
    // The primary fails: a running process does not fall back to the former one.
    let (postgres, _) = open(&on_all([&former, &primary])).await;
    primary.stop();
    postgres.0.pool.close_idle();
    let refused = postgres.acquire().await.err().unwrap();
    assert!(matches!(refused, Error::Unavailable { .. }), "{refused}");
    primary.restart();
    // It accepts connections some time after it has started.
    while postgres.acquire().await.is_err() {
        tokio::task::yield_now().await;
    }
    assert_eq!(timeline(&postgres).await, 2);
}

#[tokio::test]
async fn a_process_does_not_start_if_two_servers_accept_writes() {
    let clusters = [Cluster::start(), Cluster::start()];
    for cluster in &clusters {
        open(&cluster.url("postgres")).await;
    }
    let url = on_all([&clusters[0], &clusters[1]]);
    let (watchers, _) = broadcast::channel(1);
    let refused = Postgres::connect(&url, None, true, true, watchers).await;
    let refused = refused.err().unwrap();
    assert!(matches!(refused, Error::Unavailable { .. }), "{refused}");
    assert!(Postgres::schema(&url).await.is_err());
    let hosts = Postgres::hosts(&url).await.unwrap();
    assert!(hosts.several_primaries, "{hosts:?}");
    // As a standby that follows the first one, it would not be a problem.
    let read_only = "ALTER SYSTEM SET default_transaction_read_only = on";
    psql(&clusters[1].url("postgres"), read_only).unwrap();
    clusters[1].restart();
    open(&url).await;
    let hosts = Postgres::hosts(&url).await.unwrap();
    assert!(!hosts.several_primaries, "{hosts:?}");
}

#[tokio::test]
async fn several_hosts_may_lead_to_one_server() {
    let url = Cluster::shared().database();
    let place = url.rsplit(['@', '/']).nth(1).unwrap();
    let again = behind(&url, &place.replace("127.0.0.1", "localhost"));
    let (postgres, _) = open(&again).await;
    assert_eq!(keys(&postgres, "a").await, 0);
    let hosts = Postgres::hosts(&again).await.unwrap();
    assert!(
        !hosts.several_primaries && hosts.states.len() == 2,
        "{hosts:?}"
    );
}
