//! `/api/v1/events`: who hears what.

use futures_util::StreamExt;
use reqwest::Response;

use crate::basics::plan;
use crate::house::{House, Server};

/// Somebody who listens.
pub(crate) struct Ear {
    pieces: std::pin::Pin<Box<dyn futures_util::Stream<Item = Vec<u8>> + Send>>,
    heard: String,
}

impl Ear {
    pub(crate) async fn open(server: &Server, token: Option<&str>) -> Self {
        let mut request = server.client.get(format!("{}/api/v1/events", server.url));
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        let response = request.send().await.expect("it answers");
        assert_eq!(response.status().as_u16(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let mut ear = Self::of(response);
        assert_eq!(ear.next().await.as_deref(), Some("event: ready\ndata: {}"));
        ear
    }

    fn of(response: Response) -> Self {
        let pieces = response.bytes_stream();
        Self {
            pieces: Box::pin(
                pieces.filter_map(async |piece| piece.ok().map(|piece| piece.to_vec())),
            ),
            heard: String::new(),
        }
    }

    /// The next event, or none where the stream is over.
    pub(crate) async fn next(&mut self) -> Option<String> {
        loop {
            if let Some((event, rest)) = self.heard.split_once("\n\n") {
                let event = event.to_owned();
                self.heard = rest.to_owned();
                if !event.starts_with(':') {
                    return Some(event);
                }
                continue;
            }
            let piece = self.pieces.next().await?;
            self.heard
                .push_str(&String::from_utf8(piece).expect("text"));
        }
    }
}

fn changed(id: &serde_json::Value) -> Option<String> {
    Some(format!("event: plan_changed\ndata: {{\"planId\":{id}}}"))
}

#[tokio::test]
async fn changes_of_the_own_tenant_are_heard_and_no_others() {
    hears(House::new("events")).await;
}

#[tokio::test]
async fn changes_are_heard_on_postgresql() {
    let database = onward_testbed::Cluster::shared().database();
    hears(House::new("events-postgres").on(database)).await;
}

async fn hears(house: House) {
    let house = house.configured("[access]\nrequire_tokens = true");
    let ours = house.token("acme", "ours", "viewer");
    let works = house.token("acme", "works", "agent");
    let others = house.token("globex", "others", "agent");
    let mut server = house.serve();
    let mut ear = Ear::open(&server, Some(&ours)).await;
    server
        .post_as(&others, "/api/v1/plans", plan())
        .await
        .done();
    let first = server.post_as(&works, "/api/v1/plans", plan()).await.done();
    assert_eq!(ear.next().await, changed(&first["planId"]));
    server
        .post_as(&others, "/api/v1/plans", plan())
        .await
        .done();
    let second = server.post_as(&works, "/api/v1/plans", plan()).await.done();
    assert_eq!(ear.next().await, changed(&second["planId"]));
    // The end of the server is the end of the stream, and does not wait for it.
    server.signal("-TERM");
    assert_eq!(ear.next().await, None);
    assert_eq!(server.ended().code(), Some(0));
}

#[tokio::test]
async fn what_another_process_does_to_the_file_is_heard() {
    let server = House::new("events-file").serve();
    let mut ears = [
        Ear::open(&server, None).await,
        Ear::open(&server, None).await,
    ];
    // A plan from elsewhere: nobody in this process has ever heard of it.
    let elsewhere = House::new("events-elsewhere").serve();
    let made = elsewhere.post("/api/v1/plans", plan()).await.done();
    let id = made["planId"].as_str().expect("an id");
    let document = elsewhere.get(&format!("/api/v1/plans/{id}/export")).await;
    let file = server.house.folder.join("plan.json");
    std::fs::write(file, document.text).expect("it is written");
    server.house.prints(&["import", "plan.json"]);
    for ear in &mut ears {
        assert_eq!(ear.next().await, changed(&made["planId"]));
    }
}
