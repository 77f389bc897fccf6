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
