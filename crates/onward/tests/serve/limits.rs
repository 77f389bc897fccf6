//! What is too much, and what is answered then; and a request that runs while the server ends.

use std::net::SocketAddr;

use reqwest::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::basics::plan;
use crate::events::Ear;
use crate::house::{House, Server, send};

/// A request that is written by hand, a piece at a time.
struct Slow {
    line: TcpStream,
}

impl Slow {
    /// Begins to make a plan, and stops in the middle.
    async fn begin(server: &Server) -> (Self, Vec<u8>) {
        let body = plan().to_string().into_bytes();
        let mut line = TcpStream::connect(address(server))
            .await
            .expect("it answers");
        let head = format!(
            "POST /api/v1/plans HTTP/1.1\r\nhost: localhost\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\
             expect: 100-continue\r\n\r\n",
            body.len()
        );
        line.write_all(head.as_bytes())
            .await
            .expect("it is written");
        let mut slow = Self { line };
        // Asked for the body, the request has come through the gate and has its place.
        let said = slow.until("\r\n\r\n").await;
        assert!(said.starts_with("HTTP/1.1 100"), "{said}");
        slow.line
            .write_all(&body[..10])
            .await
            .expect("it is written");
        (slow, body[10..].to_vec())
    }

    /// What is answered, until this comes.
    async fn until(&mut self, end: &str) -> String {
        let mut said = Vec::new();
        let mut byte = [0];
        while !String::from_utf8_lossy(&said).ends_with(end) {
            match self.line.read(&mut byte).await {
                Ok(1) => said.push(byte[0]),
                _ => break,
            }
        }
        String::from_utf8_lossy(&said).into_owned()
    }

    /// Sends the rest; the answer.
    async fn finish(mut self, rest: &[u8]) -> String {
        self.line.write_all(rest).await.expect("it is written");
        self.until("\r\n\r\n").await
    }
}

fn address(server: &Server) -> SocketAddr {
    server
        .url
        .trim_start_matches("http://")
        .parse()
        .expect("an address")
}

/// Asks until it is refused; what it was told then, and how long to wait.
async fn too_often(server: &Server, token: &str) -> (serde_json::Value, u64) {
    for _ in 0..50 {
        let request = server.ask(Method::GET, "/api/v1/ping").bearer_auth(token);
        let response = request.send().await.expect("it answers");
        if response.status().is_success() {
            continue;
        }
        let wait = response.headers()["retry-after"]
            .to_str()
            .expect("a text")
            .parse();
        let answer = crate::house::Answer::of(response).await;
        return (answer.refused(429, "rate_limited"), wait.expect("a number"));
    }
    panic!("nobody is refused");
}

#[tokio::test]
async fn a_token_that_calls_too_often_is_told_to_wait_and_others_go_on() {
    let house = House::new("rate-token").configured("[limits]\ntoken_calls_per_second = 2");
    let (busy, calm) = (
        house.token("local", "busy", "agent"),
        house.token("local", "calm", "agent"),
    );
    let server = house.serve();
    let (problem, wait) = too_often(&server, &busy).await;
    assert!(
        problem["detail"]
            .as_str()
            .is_some_and(|text| text.contains("token"))
    );
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
async fn a_tenant_that_calls_too_often_is_told_to_wait_and_others_go_on() {
    let house = House::new("rate-tenant")
        .configured("[limits]\ntenant_calls_per_second = 2\n[access]\nrequire_tokens = true");
    let busy = house.token("acme", "busy", "agent");
    let calm = house.token("globex", "calm", "agent");
    let server = house.serve();
    let (problem, _) = too_often(&server, &busy).await;
    assert!(
        problem["detail"]
            .as_str()
            .is_some_and(|text| text.contains("tenant"))
    );
    assert!(
        server
            .get_as(&calm, "/api/v1/ping")
            .await
            .status
            .is_success()
    );
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_however_it_comes() {
    let server = House::new("body")
        .configured("[limits]\nbody_bytes = 1000")
        .serve();
    for path in ["/api/v1/plans", "/mcp"] {
        let announced = server.ask(Method::POST, path).body("x".repeat(1001));
        send(announced).await.refused(413, "limit_exceeded");
    }
    let pieces =
        futures_util::stream::iter((0..11).map(|_| Ok::<_, std::io::Error>("x".repeat(100))));
    let request = server.ask(Method::POST, "/api/v1/plans");
    let request = request.header("content-type", "application/json");
    let flowing = send(request.body(reqwest::Body::wrap_stream(pieces))).await;
    flowing.refused(413, "limit_exceeded");
    server.post("/api/v1/plans", plan()).await.done();
}

#[tokio::test]
async fn one_request_too_many_is_refused_at_once() {
    let server = House::new("requests")
        .configured("[limits]\nrequests = 1")
        .serve();
    let (slow, rest) = Slow::begin(&server).await;
    let refused = server.get("/api/v1/ping").await;
    refused.refused(503, "unavailable");
    assert!(
        server.get("/healthz").await.status.is_success(),
        "busy is not dead"
    );
    let said = slow.finish(&rest).await;
    assert!(said.starts_with("HTTP/1.1 201"), "{said}");
    assert!(server.get("/api/v1/ping").await.status.is_success());
}

#[tokio::test]
async fn a_request_that_does_not_come_to_an_end_is_answered() {
    let server = House::new("patience")
        .configured("[limits]\nrequest_seconds = 1")
        .serve();
    let (mut slow, _) = Slow::begin(&server).await;
    let said = slow.until("\r\n\r\n").await;
    assert!(said.starts_with("HTTP/1.1 503"), "{said}");
    assert!(server.get("/api/v1/ping").await.status.is_success());
}

#[tokio::test]
async fn one_stream_too_many_is_refused_until_one_ends() {
    let server = House::new("streams")
        .configured("[limits]\nstreams = 1")
        .serve();
    let ear = Ear::open(&server, None).await;
    server
        .get("/api/v1/events")
        .await
        .refused(503, "unavailable");
    assert!(server.get("/api/v1/ping").await.status.is_success());
    drop(ear);
    for _ in 0..5_000 {
        let asked = server.ask(Method::GET, "/api/v1/events").send().await;
        if asked.expect("it answers").status().is_success() {
            return;
        }
    }
    panic!("the place of a stream that ended is not given on");
}

#[tokio::test]
async fn what_runs_when_the_server_ends_is_answered() {
    let mut server = House::new("shutdown").serve();
    let (slow, rest) = Slow::begin(&server).await;
    server.signal("-TERM");
    let at = address(&server);
    while TcpStream::connect(at).await.is_ok() {
        // It still takes others in.
    }
    let said = slow.finish(&rest).await;
    assert!(said.starts_with("HTTP/1.1 201"), "{said}");
    assert_eq!(server.ended().code(), Some(0));
    let list = server.house.prints(&["--json", "plan", "list"]);
    assert!(list.contains("Tides"), "{list}");
}

/// Holds the table of plans on PostgreSQL, so that whoever writes waits.
struct Held {
    database: String,
    holds: std::thread::JoinHandle<Result<String, String>>,
}

impl Held {
    fn begin(database: &str) -> Self {
        onward_testbed::psql(database, "create table released (at int)").expect("it is made");
        let hold = "lock table plans in exclusive mode; \
                    do $$ begin loop exit when exists (select from released); \
                    perform pg_sleep(0.005); end loop; end $$";
        let (at, hold) = (database.to_owned(), hold.to_owned());
        let holds = std::thread::spawn(move || onward_testbed::psql(&at, &hold));
        let held = Self {
            database: database.to_owned(),
            holds,
        };
        held.until(
            "select count(*) from pg_locks where mode = 'ExclusiveLock' and granted \
                    and relation = 'plans'::regclass",
            1,
        );
        held
    }

    /// Looks until so many are counted.
    fn until(&self, count: &str, wanted: usize) {
        let counted = || onward_testbed::psql(&self.database, count).expect("it counts");
        while counted().trim().parse() != Ok(wanted) {}
    }

    fn release(self) {
        let released = onward_testbed::psql(&self.database, "insert into released values (1)");
        released.expect("it is released");
        self.holds.join().expect("it ends").expect("it held");
    }
}

// One thread waits for the database while others ask.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_run_when_the_server_ends_are_answered_on_every_way() {
    let database = onward_testbed::Cluster::shared().database();
    let mut server = House::new("shutdown-calls").on(database.clone()).serve();
    let held = Held::begin(&database);
    let api = tokio::spawn(send(
        server.ask(Method::POST, "/api/v1/plans").json(&plan()),
    ));
    let call = |meta| {
        serde_json::json!({
            "jsonrpc": "2.0", "id": 7, "method": "tools/call",
            "params": { "name": "create_research_plan", "arguments": plan(), "_meta": meta },
        })
    };
    let about = |name: &str| format!("io.modelcontextprotocol/{name}");
    let meta = serde_json::json!({
        about("protocolVersion"): "2026-07-28",
        about("clientCapabilities"): {},
        about("clientInfo"): { "name": "test", "version": "0" },
    });
    let mcp = server.ask(Method::POST, "/mcp").json(&call(meta));
    let mcp = mcp
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "create_research_plan");
    let stateless = tokio::spawn(send(mcp));
    let (session, hello) = crate::mcp::speak(&server, None, None, crate::mcp::hello()).await;
    assert!(hello.status.is_success(), "{hello:?}");
    let session = session.expect("a session");
    let spoken = crate::mcp::spoken(&server, None, Some(&session), call(serde_json::json!({})));
    let legacy = tokio::spawn(send(spoken));
    held.until(
        "select count(*) from pg_locks where not granted and relation = 'plans'::regclass",
        3,
    );
    server.signal("-TERM");
    let at = address(&server);
    while TcpStream::connect(at).await.is_ok() {
        // It still takes others in.
    }
    // Longer than answers are given to get onto the line: a server that did not wait for calls would
    // have ended their streams by then.
    for _ in 0..40 {
        onward_testbed::psql(&database, "select 1").expect("it answers");
    }
    held.release();
    for answer in [api.await, stateless.await, legacy.await] {
        let answer = answer.expect("it is answered");
        assert!(answer.status.is_success(), "{answer:?}");
        assert!(answer.text.contains("\"planId\""), "{answer:?}");
    }
    assert_eq!(server.ended().code(), Some(0), "{}", server.house.told());
    let list = server.house.prints(&["--json", "plan", "list"]);
    assert_eq!(list.matches("\"planId\"").count(), 3, "{list}");
}
