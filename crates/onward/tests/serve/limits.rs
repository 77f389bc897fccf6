//! Rate, size, concurrency and time limits, and requests that are in flight during shutdown.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use onward_testbed::{Response, Server, TIMEOUT, send};
use reqwest::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::basics::plan;
use crate::events::EventStream;
use crate::program;

const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A request whose body is sent in two parts.
struct PartialRequest {
    connection: TcpStream,
}

impl PartialRequest {
    /// Sends the head and the start of a request to create a plan. Returns the rest of the body.
    async fn start(server: &Server) -> (Self, Vec<u8>) {
        let body = plan().to_string().into_bytes();
        let mut connection = TcpStream::connect(address(server))
            .await
            .expect("connected");
        let head = format!(
            "POST /api/v1/plans HTTP/1.1\r\nhost: localhost\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\
             expect: 100-continue\r\n\r\n",
            body.len()
        );
        connection
            .write_all(head.as_bytes())
            .await
            .expect("data written");
        let mut partial = Self { connection };
        // The server requests the body, so the request counts as in flight.
        let head = partial.read_until("\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 100"), "{head}");
        partial
            .connection
            .write_all(&body[..10])
            .await
            .expect("data written");
        (partial, body[10..].to_vec())
    }

    /// Reads the response up to this text.
    async fn read_until(&mut self, end: &str) -> String {
        let mut head = Vec::new();
        let mut byte = [0];
        while !String::from_utf8_lossy(&head).ends_with(end) {
            match self.connection.read(&mut byte).await {
                Ok(1) => head.push(byte[0]),
                _ => break,
            }
        }
        String::from_utf8_lossy(&head).into_owned()
    }

    /// Sends the rest of the body. Returns the head of the response.
    async fn finish(mut self, rest: &[u8]) -> String {
        self.connection.write_all(rest).await.expect("data written");
        self.read_until("\r\n\r\n").await
    }
}

fn address(server: &Server) -> SocketAddr {
    server
        .url
        .trim_start_matches("http://")
        .parse()
        .expect("address is valid")
}

/// Sends requests until the rate limit rejects one. Returns the seconds in `Retry-After`.
async fn exceed_rate_limit(server: &Server, token: &str) -> u64 {
    for _ in 0..50 {
        let request = server
            .request(Method::GET, "/api/v1/ping")
            .bearer_auth(token);
        let response = request.send().await.expect("response received");
        if response.status().is_success() {
            continue;
        }
        let wait = response.headers()["retry-after"]
            .to_str()
            .expect("value is a string")
            .parse();
        let response = Response::read(response).await;
        response.expect_problem(429, "rate_limited");
        return wait.expect("value is a number");
    }
    panic!("no request was rejected");
}

#[tokio::test]
async fn limits_the_rate_of_one_token_only() {
    let setup = program("rate-token").with_config("[limits]\ntoken_calls_per_second = 2");
    let (busy, calm) = (
        setup.token("local", "busy", "agent"),
        setup.token("local", "calm", "agent"),
    );
    let server = setup.serve();
    let wait = exceed_rate_limit(&server, &busy).await;
    assert!((1..=2).contains(&wait), "{wait}");
    assert!(
        server
            .get_as(&calm, "/api/v1/ping")
            .await
            .status
            .is_success()
    );
    assert!(server.get("/healthz").await.status.is_success());
}

#[tokio::test]
async fn limits_the_rate_of_one_tenant_only() {
    let setup = program("rate-tenant")
        .with_config("[limits]\ntenant_calls_per_second = 2\n[access]\nrequire_tokens = true");
    let busy = setup.token("acme", "busy", "agent");
    let calm = setup.token("globex", "calm", "agent");
    let server = setup.serve();
    exceed_rate_limit(&server, &busy).await;
    assert!(
        server
            .get_as(&calm, "/api/v1/ping")
            .await
            .status
            .is_success()
    );
}

#[tokio::test]
async fn rejects_large_bodies_with_and_without_a_length() {
    let server = program("body")
        .with_config("[limits]\nbody_bytes = 1000")
        .serve();
    for path in ["/api/v1/plans", "/mcp"] {
        let with_length = server.request(Method::POST, path).body("x".repeat(1001));
        send(with_length)
            .await
            .expect_problem(413, "limit_exceeded");
    }
    let chunks =
        futures_util::stream::iter((0..11).map(|_| Ok::<_, std::io::Error>("x".repeat(100))));
    let request = server.request(Method::POST, "/api/v1/plans");
    let request = request.header("content-type", "application/json");
    let chunked = send(request.body(reqwest::Body::wrap_stream(chunks))).await;
    chunked.expect_problem(413, "limit_exceeded");
    server.post("/api/v1/plans", plan()).await.expect_success();
}

#[tokio::test]
async fn rejects_requests_above_the_concurrency_limit_immediately() {
    let server = program("requests")
        .with_config("[limits]\nrequests = 1")
        .serve();
    let (partial, rest) = PartialRequest::start(&server).await;
    let rejected = server.get("/api/v1/ping").await;
    rejected.expect_problem(429, "rate_limited");
    assert_eq!(rejected.header("retry-after"), "1");
    assert!(
        server.get("/healthz").await.status.is_success(),
        "the health check has no limit"
    );
    let head = partial.finish(&rest).await;
    assert!(head.starts_with("HTTP/1.1 201"), "{head}");
    assert!(server.get("/api/v1/ping").await.status.is_success());
}

#[tokio::test]
async fn responds_when_a_request_times_out() {
    let server = program("request-timeout")
        .with_config("[limits]\nrequest_seconds = 1")
        .serve();
    let (mut partial, _) = PartialRequest::start(&server).await;
    let head = partial.read_until("\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 503"), "{head}");
    assert!(server.get("/api/v1/ping").await.status.is_success());
}

#[tokio::test]
async fn rejects_streams_above_the_limit_until_one_closes() {
    let server = program("streams")
        .with_config("[limits]\nstreams = 1")
        .serve();
    let events = EventStream::open(&server, None).await;
    server
        .get("/api/v1/events")
        .await
        .expect_problem(429, "rate_limited");
    assert!(server.get("/api/v1/ping").await.status.is_success());
    drop(events);
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let response = server.request(Method::GET, "/api/v1/events").send().await;
        if response.expect("response received").status().is_success() {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "the closed stream still counts against the limit"
        );
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

#[tokio::test]
async fn completes_a_request_in_flight_during_shutdown() {
    let mut server = program("shutdown").serve();
    let (partial, rest) = PartialRequest::start(&server).await;
    server.signal("-TERM");
    wait_until_closed(&server).await;
    let head = partial.finish(&rest).await;
    assert!(head.starts_with("HTTP/1.1 201"), "{head}");
    assert_eq!(server.wait().code(), Some(0));
    let list = server.program().run_ok(&["--json", "plan", "list"]);
    assert!(list.contains("Tides"), "{list}");
}

/// Waits until the server accepts no more connections.
async fn wait_until_closed(server: &Server) {
    let deadline = Instant::now() + TIMEOUT;
    while TcpStream::connect(address(server)).await.is_ok() {
        assert!(Instant::now() < deadline, "the server accepts connections");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Locks the table of plans on PostgreSQL, so that writers block.
struct TableLock {
    database: String,
    holder: std::thread::JoinHandle<Result<String, String>>,
}

impl TableLock {
    fn acquire(database: &str) -> Self {
        onward_testbed::psql(database, "create table released (at int)").expect("table created");
        let hold = "lock table plans in exclusive mode; \
                    do $$ begin loop exit when exists (select from released); \
                    perform pg_sleep(0.005); end loop; end $$";
        let (at, hold) = (database.to_owned(), hold.to_owned());
        let holder = std::thread::spawn(move || onward_testbed::psql(&at, &hold));
        let lock = Self {
            database: database.to_owned(),
            holder,
        };
        lock.wait_for_count(
            "select count(*) from pg_locks where mode = 'ExclusiveLock' and granted \
                    and relation = 'plans'::regclass",
            1,
        );
        lock
    }

    /// Runs a counting query until it returns this number.
    fn wait_for_count(&self, query: &str, expected: usize) {
        let deadline = Instant::now() + TIMEOUT;
        let count = || onward_testbed::psql(&self.database, query).expect("query succeeded");
        while count().trim().parse() != Ok(expected) {
            assert!(Instant::now() < deadline, "`{query}` is not {expected}");
        }
    }

    fn release(self) {
        let released = onward_testbed::psql(&self.database, "insert into released values (1)");
        released.expect("lock released");
        self.holder
            .join()
            .expect("thread exited")
            .expect("lock was held");
    }
}

// One thread blocks on the database while the requests are in flight.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn completes_api_and_mcp_calls_in_flight_during_shutdown() {
    let database = onward_testbed::Cluster::shared().database();
    let mut server = program("shutdown-calls")
        .with_database(database.clone())
        .serve();
    // The server may start before it has created the tables.
    server.get("/api/v1/plans").await.expect_success();
    let lock = TableLock::acquire(&database);
    let api = tokio::spawn(send(
        server.request(Method::POST, "/api/v1/plans").json(&plan()),
    ));
    let call = |meta| {
        serde_json::json!({
            "jsonrpc": "2.0", "id": 7, "method": "tools/call",
            "params": { "name": "create_research_plan", "arguments": plan(), "_meta": meta },
        })
    };
    let key = |name: &str| format!("io.modelcontextprotocol/{name}");
    let meta = serde_json::json!({
        key("protocolVersion"): "2026-07-28",
        key("clientCapabilities"): {},
        key("clientInfo"): { "name": "test", "version": "0" },
    });
    let mcp = server.request(Method::POST, "/mcp").json(&call(meta));
    let mcp = mcp
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "create_research_plan");
    let stateless = tokio::spawn(send(mcp));
    let (session, response) =
        crate::mcp::send_message(&server, None, None, crate::mcp::initialize_request()).await;
    assert!(response.status.is_success(), "{response:?}");
    let session = session.expect("session started");
    let request =
        crate::mcp::message_request(&server, None, Some(&session), call(serde_json::json!({})));
    let legacy = tokio::spawn(send(request));
    lock.wait_for_count(
        "select count(*) from pg_locks where not granted and relation = 'plans'::regclass",
        3,
    );
    server.signal("-TERM");
    wait_until_closed(&server).await;
    // Longer than the flush delay: a server that did not wait for calls would have closed their
    // streams by then.
    tokio::time::sleep(Duration::from_millis(500)).await;
    lock.release();
    for response in [api.await, stateless.await, legacy.await] {
        let response = response.expect("request completed");
        assert!(response.status.is_success(), "{response:?}");
        assert!(response.text().contains("\"planId\""), "{response:?}");
    }
    assert_eq!(server.wait().code(), Some(0), "{}", server.log());
    let list = server.program().run_ok(&["--json", "plan", "list"]);
    assert_eq!(list.matches("\"planId\"").count(), 3, "{list}");
}
