//! A server that cannot be reached, or that can and says nothing.

use std::net::{Ipv4Addr, TcpListener};

use onward_engine::{Address, Engine};

use crate::{in_time, is_unavailable};

fn address(port: u16) -> Address {
    Address::Server(format!("postgres://onward:secret@127.0.0.1:{port}/onward"))
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up_in_time() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = address(listener.local_addr().unwrap().port());
    // Accepts, keeps the connections open, and never says a word.
    std::thread::spawn(move || listener.incoming().collect::<Vec<_>>());
    let opened = in_time(Engine::open(&address, Default::default())).await;
    let why = opened.err().expect("there is no server");
    is_unavailable(&why);
    assert!(!why.to_string().contains("secret"), "{why}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = address(listener.local_addr().unwrap().port());
    drop(listener);
    let opened = in_time(Engine::open(&address, Default::default())).await;
    is_unavailable(&opened.err().expect("there is no server"));
}
