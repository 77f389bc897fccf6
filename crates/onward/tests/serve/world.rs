//! One object of every kind in a tenant, so that requests can name each of them.

use onward_testbed::Server;
use serde_json::{Value, json};

/// The ids of one object of every kind.
#[derive(Clone, Debug)]
pub(crate) struct Ids {
    pub(crate) plan: String,
    /// In progress, held by `session` with `claim`.
    pub(crate) step: String,
    pub(crate) claim: String,
    /// Open, for a step of another plan.
    pub(crate) review: String,
    pub(crate) artifact: String,
    pub(crate) output: String,
    /// An execution of a skill.
    pub(crate) execution: String,
    pub(crate) session: String,
    /// The first call of the session's first turn.
    pub(crate) call: String,
    pub(crate) token: String,
    pub(crate) idempotency_key: String,
}

impl Ids {
    /// Valid ids that do not exist.
    pub(crate) fn missing() -> Self {
        let id = |last: u32| format!("5d0e1f8a-3b67-4c1d-9e42-7a8b9c0d1e{last:02}");
        Self {
            plan: id(1),
            step: id(2),
            claim: "0123456789abcdef0123456789abcdef".to_owned(),
            review: id(7),
            artifact: id(3),
            output: id(4),
            execution: id(5),
            session: "a-missing-session".to_owned(),
            call: "a-missing-call".to_owned(),
            token: id(6),
            idempotency_key: "a-missing-key".to_owned(),
        }
    }

    /// Creates the objects with the permissions of an owner. Their texts contain `word`, and
    /// `number` makes their names unique.
    pub(crate) async fn create(
        server: &Server,
        owner: Option<&str>,
        word: &str,
        number: usize,
    ) -> Self {
        let session = format!("{word}-session-{number}");
        let call = format!("{word}-call-{number}");
        let idempotency_key = format!("{word}-key-{number}");
        let post = async |path: &str, body: Value| {
            let path = format!("/api/v1{path}");
            let response = match owner {
                Some(owner) => server.post_as(owner, &path, body).await,
                None => server.post(&path, body).await,
            };
            response.expect_success()
        };
        let steps = ["search", "synthesize"].map(|kind| {
            json!({ "stepType": kind, "title": word, "instructions": format!("Find {word}.") })
        });
        let plan = json!({
            "name": format!("{word} plan"),
            "researchQuestion": format!("Why {word}?"),
            "steps": steps,
            "idempotencyKey": idempotency_key,
            "projectKey": idempotency_key,
        });
        let plan = text(&post("/plans", plan).await, "planId");
        let next = format!("/plans/{plan}/next");
        let next = post(&next, json!({ "sessionId": session })).await;
        let other = json!({
            "name": format!("{word} review"),
            "researchQuestion": format!("Why {word}?"),
            "steps": [{ "stepType": "search", "instructions": format!("Find {word}.") }],
        });
        let other = text(&post("/plans", other).await, "planId");
        let step = text(
            &post(&format!("/plans/{other}/next"), json!({})).await,
            "stepId",
        );
        let summary = json!({ "summary": format!("Found {word}.") });
        let review = post(&format!("/steps/{step}/review"), summary).await;
        let words = json!({ "title": word, "content": format!("the {word} words") });
        let artifact = text(&post("/artifacts", words.clone()).await, "artifactId");
        let output = post(&format!("/plans/{plan}/outputs"), words).await;
        let skill = json!({ "skillName": word, "status": "started", "sessionId": session });
        let skill = post("/skills", skill).await;
        let running = json!({ "tool": word, "turn": 1, "status": "running", "callId": call });
        post(&format!("/sessions/{session}/calls"), running).await;
        let token = json!({ "name": format!("{word}-{number}"), "role": "viewer" });
        let token = post("/tokens", token).await;
        Self {
            step: text(&next, "stepId"),
            claim: text(&next, "claimToken"),
            output: text(&output, "outputId"),
            execution: text(&skill, "executionId"),
            token: text(&token, "tokenId"),
            review: text(&review, "reviewId"),
            plan,
            artifact,
            session,
            call,
            idempotency_key,
        }
    }

    /// The value for an argument that names an object; `None` for other arguments.
    ///
    /// # Panics
    ///
    /// If the argument names a kind of object that is not in this table.
    pub(crate) fn argument(&self, name: &str) -> Option<Value> {
        let value = match name {
            "planId" | "fromPlanId" => json!(self.plan),
            "reviewId" => json!(self.review),
            "stepId" | "targetStepId" => json!(self.step),
            "stepIds" | "dependsOn" => json!([self.step]),
            "claimToken" => json!(self.claim),
            "artifactId" => json!(self.artifact),
            "outputId" => json!(self.output),
            "executionId" => json!(self.execution),
            "sessionId" => json!(self.session),
            "callId" => json!(self.call),
            "tokenId" => json!(self.token),
            "idempotencyKey" | "projectKey" => json!(self.idempotency_key),
            // Numbers inside a session, and the identity of a machine.
            "turn" | "position" | "bootId" | "processId" => return None,
            other => {
                let suffixes = ["Id", "Ids", "Key", "Token", "Ref"];
                let is_id = suffixes.iter().any(|suffix| other.ends_with(suffix));
                assert!(!is_id, "the argument `{other}` has no value: add one");
                return None;
            }
        };
        Some(value)
    }

    /// All ids as text.
    pub(crate) fn all(&self) -> [&str; 10] {
        [
            &self.plan,
            &self.step,
            &self.claim,
            &self.artifact,
            &self.output,
            &self.execution,
            &self.session,
            &self.call,
            &self.token,
            &self.idempotency_key,
        ]
    }
}

fn text(value: &Value, field: &str) -> String {
    let text = value[field].as_str();
    text.unwrap_or_else(|| panic!("no `{field}` in {value}"))
        .to_owned()
}
