//! Fair shares of what callers wait for: request bodies, reads, exports and temporary files. One
//! caller, also a slow one, delays no caller of another tenant.

use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use onward_testbed::{Program, Response, Server, TIMEOUT};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, timeout};

use crate::memory::create_large_plan;
use crate::program;

const POLL_INTERVAL: Duration = Duration::from_millis(5);
const MIB: usize = 1024 * 1024;

fn tenants(test: &str, config: &str) -> Program {
    program(test).with_config(&format!("[access]\nrequire_tokens = true\n{config}"))
}

fn address(server: &Server) -> std::net::SocketAddr {
    let address = server.url.trim_start_matches("http://").parse();
    address.expect("address is valid")
}

/// Sends the head of a request and the start of its body.
async fn send_part(
    server: &Server,
    token: &str,
    path: &str,
    announced: usize,
    sent: usize,
) -> TcpStream {
    let connected = TcpStream::connect(address(server)).await;
    let mut connection = connected.expect("connected");
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {announced}\r\n\r\n{{\"content\":\""
    );
    let written = connection.write_all(head.as_bytes()).await;
    written.expect("head written");
    // The server stops reading at the caller's share.
    let content = vec![b'a'; sent];
    drop(timeout(Duration::from_secs(1), connection.write_all(&content)).await);
    connection
}

/// Whether the server has responded on this connection.
fn has_response(connection: &TcpStream) -> bool {
    let received = connection.try_read(&mut [0; 1]);
    !matches!(received, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
}

/// Sends a byte at a time, until the server responds to one of the requests.
async fn trickle(connections: &[TcpStream]) {
    let mut interval = tokio::time::interval(Duration::from_millis(100));
    while !connections.iter().any(has_response) {
        for connection in connections {
            drop(connection.try_write(b"a"));
        }
        interval.tick().await;
    }
}

async fn store_artifact(server: &Server, token: &str, bytes: usize) -> Response {
    let artifact = json!({ "title": "t", "content": "a".repeat(bytes) });
    server.post_as(token, "/api/v1/artifacts", artifact).await
}

#[tokio::test]
async fn announced_bytes_delay_no_other_caller() {
    let setup = tenants("announced", "");
    let greedy = setup.token("acme", "greedy", "agent");
    let modest = setup.token("globex", "modest", "agent");
    let server = setup.serve();
    let mut connections = Vec::new();
    for _ in 0..40 {
        connections.push(send_part(&server, &greedy, "/api/v1/plans", 16 * MIB, 200).await);
    }
    tokio::select! {
        stored = store_artifact(&server, &modest, 100_000) => drop(stored.expect_success()),
        () = trickle(&connections) => panic!("the request waited for the others"),
    }
}

#[tokio::test]
async fn large_bodies_that_stop_delay_no_other_caller() {
    let setup = tenants("stopped-bodies", "");
    let greedy = setup.token("acme", "greedy", "agent");
    let colleague = setup.token("acme", "colleague", "agent");
    let modest = setup.token("globex", "modest", "agent");
    let server = setup.serve();
    let path = "/api/v1/artifacts";
    let parts = (0..6).map(|_| send_part(&server, &greedy, path, 4 * MIB, 3 * MIB));
    let connections = futures_util::future::join_all(parts).await;
    for token in [&modest, &colleague] {
        tokio::select! {
            stored = store_artifact(&server, token, MIB) => drop(stored.expect_success()),
            () = trickle(&connections) => panic!("the request waited for the others"),
        }
    }
}

#[tokio::test]
async fn a_body_without_a_first_byte_ends_before_one_that_arrives() {
    let server = program("first-byte").serve();
    let head = |length: usize| {
        format!(
            "POST /api/v1/plans HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        )
    };
    let mut arriving = TcpStream::connect(address(&server)).await.unwrap();
    arriving.write_all(head(1_000).as_bytes()).await.unwrap();
    let mut silent = TcpStream::connect(address(&server)).await.unwrap();
    silent.write_all(head(1_000).as_bytes()).await.unwrap();
    let mut response = String::new();
    while timeout(
        Duration::from_millis(500),
        silent.read_to_string(&mut response),
    )
    .await
    .is_err()
    {
        assert!(!has_response(&arriving), "both have the same deadline");
        arriving.write_all(b" ").await.unwrap();
    }
    assert!(response.starts_with("HTTP/1.1 408 "), "{response}");
    assert!(!has_response(&arriving));
}

#[tokio::test]
async fn exports_delay_no_read_of_another_tenant() {
    const EXPORTS: usize = 24;
    let setup = tenants("export-shares", "[limits]\nrequest_seconds = 300");
    let owner = setup.token("acme", "owner", "owner");
    let greedy = setup.token("acme", "greedy", "viewer");
    let colleague = setup.token("acme", "colleague", "viewer");
    let modest = setup.token("globex", "modest", "viewer");
    let server = setup.serve();
    let (plan, _) = create_large_plan(&server, &owner).await;
    let path = format!("/api/v1/plans/{plan}/export");
    let mut exports: FuturesUnordered<_> = (0..EXPORTS)
        .map(|_| server.get_as(&greedy, &path))
        .collect();
    let first = exports.next().await.expect("an export is complete");
    assert!(first.status.is_success());
    let reads = async {
        for token in [&modest, &colleague] {
            server.get_as(token, "/api/v1/plans").await.expect_success();
        }
    };
    let mut reads = std::pin::pin!(reads);
    let mut done = 1;
    loop {
        tokio::select! {
            () = &mut reads => break,
            _ = exports.next() => done += 1,
        }
    }
    assert!(done < EXPORTS / 2, "the reads waited for {done} exports");
}

/// Requests a path, and reads nothing of the response.
async fn request_without_reading(server: &Server, token: &str, path: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("socket created");
    // The rest of the response stays in the server.
    socket.set_recv_buffer_size(4_096).expect("size is valid");
    let mut connection = socket.connect(address(server)).await.expect("connected");
    let head =
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n");
    let written = connection.write_all(head.as_bytes()).await;
    written.expect("request written");
    connection
}

/// Open temporary files of exports.
fn temporary_files(server: &Server) -> usize {
    let open = std::fs::read_dir(format!("/proc/{}/fd", server.id())).expect("process runs");
    let targets = open.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
    let is_export = |path: &std::path::PathBuf| path.to_string_lossy().contains("onward-export-");
    targets.filter(is_export).count()
}

async fn wait_for_files(server: &Server, expected: impl Fn(usize) -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !expected(temporary_files(server)) {
        let files = temporary_files(server);
        assert!(Instant::now() < deadline, "{files} temporary files");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_is_disconnected() {
    let setup = tenants("slow-readers", "[limits]\nrequest_seconds = 10");
    let owner = setup.token("acme", "owner", "owner");
    let viewer = setup.token("acme", "viewer", "viewer");
    let server = setup.serve();
    let (plan, _) = create_large_plan(&server, &owner).await;
    let path = format!("/api/v1/plans/{plan}/export");
    let mut connections = Vec::new();
    for _ in 0..4 {
        connections.push(request_without_reading(&server, &viewer, &path).await);
    }
    wait_for_files(&server, |files| files > 0).await;
    wait_for_files(&server, |files| files == 0).await;
    let export = server.get_as(&viewer, &path).await;
    export.expect_success();
}

#[tokio::test]
async fn stops_while_clients_do_not_read() {
    let setup = tenants("stop-slow-readers", "");
    let owner = setup.token("acme", "owner", "owner");
    let viewer = setup.token("acme", "viewer", "viewer");
    let mut server = setup.serve();
    let (plan, _) = create_large_plan(&server, &owner).await;
    let path = format!("/api/v1/plans/{plan}/export");
    let mut connections = Vec::new();
    for _ in 0..60 {
        connections.push(request_without_reading(&server, &viewer, &path).await);
    }
    wait_for_files(&server, |files| files > 2).await;
    server.signal("-TERM");
    assert_eq!(server.wait().code(), Some(0), "{}", server.log());
}

#[tokio::test]
async fn a_plan_as_markdown_waits_in_a_file_for_its_reader() {
    let setup = tenants("markdown-file", "");
    let owner = setup.token("local", "owner", "owner");
    let server = setup.serve();
    let step = json!({ "stepType": "search", "instructions": "i".repeat(100_000) });
    let plan = json!({ "name": "n", "researchQuestion": "q", "steps": vec![step; 25] });
    let plan = server.post_as(&owner, "/api/v1/plans", plan).await;
    let plan = plan.expect_success()["planId"].as_str().map(str::to_owned);
    let path = format!("/plans/{}/export.md", plan.expect("id is a string"));
    let unread = request_without_reading(&server, &owner, &path).await;
    wait_for_files(&server, |files| files > 0).await;
    drop(unread);
    wait_for_files(&server, |files| files == 0).await;
}
