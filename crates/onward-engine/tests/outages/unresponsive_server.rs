//! A PostgreSQL server that accepts connections without responding, and one that does not run.

use std::net::{Ipv4Addr, TcpListener};

use onward_engine::{Address, Engine};

use crate::{assert_unavailable, within_limit};

fn address(port: u16) -> Address {
    Address::Server(format!("postgres://onward:secret@127.0.0.1:{port}/onward"))
}

#[tokio::test]
async fn a_server_that_does_not_respond_is_unavailable_within_the_limit() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = address(listener.local_addr().unwrap().port());
    // Accepts connections and keeps them open without sending anything.
    std::thread::spawn(move || listener.incoming().collect::<Vec<_>>());
    let opened = within_limit(Engine::open(&address, Default::default())).await;
    let error = opened.err().expect("server does not respond");
    assert_unavailable(&error);
    assert!(!error.to_string().contains("secret"), "{error}");
}

#[tokio::test]
async fn a_server_that_does_not_run_is_unavailable() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = address(listener.local_addr().unwrap().port());
    drop(listener);
    let opened = within_limit(Engine::open(&address, Default::default())).await;
    assert_unavailable(&opened.err().expect("server does not run"));
}
