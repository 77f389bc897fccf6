//! `/api/v1/events`: events are sent for every change of the tenant, and for no other.

use futures_util::StreamExt;
use onward_testbed::{Program, Server};
use reqwest::Response;

use crate::basics::plan;
use crate::program;

/// An open stream of server-sent events.
pub(crate) struct EventStream {
    chunks: std::pin::Pin<Box<dyn futures_util::Stream<Item = Vec<u8>> + Send>>,
    buffer: String,
}

impl EventStream {
    pub(crate) async fn open(server: &Server, token: Option<&str>) -> Self {
        let mut request = server.client.get(format!("{}/api/v1/events", server.url));
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        let response = request.send().await.expect("response received");
        assert_eq!(response.status().as_u16(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let mut events = Self::from_response(response);
        assert_eq!(
            events.next().await.as_deref(),
            Some("event: ready\ndata: {}")
        );
        events
    }

    fn from_response(response: Response) -> Self {
        let chunks = response.bytes_stream();
        Self {
            // An error ends the stream.
            chunks: Box::pin(
                chunks
                    .take_while(|chunk| std::future::ready(chunk.is_ok()))
                    .filter_map(async |chunk| chunk.ok().map(|chunk| chunk.to_vec())),
            ),
            buffer: String::new(),
        }
    }

    /// The next event, or `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<String> {
        loop {
            if let Some((event, rest)) = self.buffer.split_once("\n\n") {
                let event = event.to_owned();
                self.buffer = rest.to_owned();
                if !event.starts_with(':') {
                    return Some(event);
                }
                continue;
            }
            let chunk = self.chunks.next().await?;
            self.buffer
                .push_str(&String::from_utf8(chunk).expect("valid UTF-8"));
        }
    }
}

fn plan_changed(id: &serde_json::Value) -> Option<String> {
    Some(format!("event: plan_changed\ndata: {{\"planId\":{id}}}"))
}

#[tokio::test]
async fn streams_changes_of_the_callers_tenant_only() {
    streams_own_changes(program("events")).await;
}

#[tokio::test]
async fn streams_changes_of_the_callers_tenant_only_on_postgresql() {
    let database = onward_testbed::Cluster::shared().database();
    streams_own_changes(program("events-postgres").with_database(database)).await;
}

#[tokio::test]
async fn reports_missed_events_after_a_lost_database_connection() {
    let database = onward_testbed::Cluster::shared().database();
    let server = program("events-missed")
        .with_database(database.clone())
        .serve();
    // The server may start before it is connected.
    server.get("/api/v1/plans").await.expect_success();
    let mut events = EventStream::open(&server, None).await;
    let listening = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%LISTEN onward_changes%'";
    onward_testbed::psql(&database, listening).expect("connection terminated");
    let event = events.next().await;
    assert_eq!(event.as_deref(), Some("event: missed\ndata: {}"));
    let created = server.post("/api/v1/plans", plan()).await.expect_success();
    assert_eq!(events.next().await, plan_changed(&created["planId"]));
}

async fn streams_own_changes(setup: Program) {
    let setup = setup.with_config("[access]\nrequire_tokens = true");
    let ours = setup.token("acme", "ours", "viewer");
    let agent = setup.token("acme", "agent", "agent");
    let others = setup.token("globex", "others", "agent");
    let mut server = setup.serve();
    let mut events = EventStream::open(&server, Some(&ours)).await;
    server
        .post_as(&others, "/api/v1/plans", plan())
        .await
        .expect_success();
    let first = server
        .post_as(&agent, "/api/v1/plans", plan())
        .await
        .expect_success();
    assert_eq!(events.next().await, plan_changed(&first["planId"]));
    server
        .post_as(&others, "/api/v1/plans", plan())
        .await
        .expect_success();
    let second = server
        .post_as(&agent, "/api/v1/plans", plan())
        .await
        .expect_success();
    assert_eq!(events.next().await, plan_changed(&second["planId"]));
    // Shutdown closes the stream instead of waiting for the client.
    server.signal("-TERM");
    assert_eq!(events.next().await, None);
    assert_eq!(server.wait().code(), Some(0));
}

#[tokio::test]
async fn streams_changes_that_another_process_makes_to_the_file() {
    let server = program("events-file").serve();
    let mut streams = [
        EventStream::open(&server, None).await,
        EventStream::open(&server, None).await,
    ];
    // Imports a plan of another database, so that this process has no cached state of it.
    let source = program("events-source").serve();
    let created = source.post("/api/v1/plans", plan()).await.expect_success();
    let id = created["planId"].as_str().expect("id is a string");
    let document = source.get(&format!("/api/v1/plans/{id}/export")).await;
    let file = server.program().dir.join("plan.json");
    std::fs::write(file, document.text()).expect("file written");
    server.program().run_ok(&["import", "plan.json"]);
    for events in &mut streams {
        assert_eq!(events.next().await, plan_changed(&created["planId"]));
    }
}
