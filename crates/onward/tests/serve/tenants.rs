//! Tenant isolation, generated from the routes: for every route and every argument that names an
//! object, the id of another tenant gets the same response as an id that does not exist. No response
//! contains a text of the other tenant, and nothing of it changes.

use std::sync::Arc;

use onward_testbed::mcp_client::Era;
use onward_testbed::sdk_client::SdkClient;
use onward_testbed::{Program, Response, Server};
use reqwest::Method;
use serde_json::{Value, json};

use crate::page_routes::{self, Route, Visitor};
use crate::program;
use crate::routes::{Sample, arguments, body_and_role, fill};
use crate::world::Ids;

/// A word in every text of the other tenant.
const THEIR_WORD: &str = "zanzibar";
const OUR_WORD: &str = "tides";

/// Two tenants on one server.
struct Tenants {
    server: Arc<Server>,
    ours: String,
    theirs: String,
    their_ids: Ids,
    /// Number of our worlds.
    worlds: usize,
}

impl Tenants {
    async fn new(setup: Program) -> Self {
        let setup = setup.with_config(
            "[access]\nrequire_tokens = true\n[limits]\ntoken_calls_per_second = 1000000",
        );
        let ours = setup.token("acme", "ours", "owner");
        let theirs = setup.token("globex", "theirs", "owner");
        let server = Arc::new(setup.serve());
        let their_ids = Ids::create(&server, Some(&theirs), THEIR_WORD, 1).await;
        Self {
            server,
            ours,
            theirs,
            their_ids,
            worlds: 0,
        }
    }

    /// New objects in our tenant, so that each request meets the same state.
    async fn our_ids(&mut self) -> Ids {
        self.worlds += 1;
        Ids::create(&self.server, Some(&self.ours), OUR_WORD, self.worlds).await
    }

    /// Everything that the other tenant sees of its objects.
    async fn their_view(&self) -> Vec<Value> {
        let ids = &self.their_ids;
        let mut view = Vec::new();
        for path in [
            "/plans?includeFinished=true".to_owned(),
            format!("/plans/{}", ids.plan),
            format!("/plans/{}/steps", ids.plan),
            format!("/plans/{}/audit", ids.plan),
            "/audit?since=2026-01-01T00:00:00Z".to_owned(),
            format!("/plans/{}/export", ids.plan),
            format!("/artifacts/{}", ids.artifact),
            format!("/outputs/{}", ids.output),
            "/reviews".to_owned(),
            "/sessions".to_owned(),
            format!("/sessions/{}", ids.session),
            "/tokens".to_owned(),
            format!("/search?query={THEIR_WORD}"),
        ] {
            let response = self
                .server
                .get_as(&self.theirs, &format!("/api/v1{path}"))
                .await;
            view.push(normalize_json(response.expect_success(), &[]));
        }
        let skill = format!("/library/skills/{}", ids.execution);
        let skill = self.server.get_as(&self.theirs, &skill).await;
        assert!(skill.status.is_success(), "{skill:?}");
        view
    }
}

/// The value without ids, times and numbers, which differ between otherwise equal responses.
fn normalize_json(value: Value, ids: &[&str]) -> Value {
    match value {
        Value::String(text) => json!(normalize_text(&text, ids)),
        Value::Number(_) => json!(0),
        Value::Array(values) => {
            let values = values.into_iter().map(|value| normalize_json(value, ids));
            let mut values: Vec<Value> = values.collect();
            // Lists may be ordered by ids, which are random.
            values.sort_by_key(Value::to_string);
            values.into()
        }
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| match name.as_str() {
                "claimToken" => (name, json!("#")),
                _ => (name, normalize_json(value, ids)),
            })
            .collect(),
        Value::Null | Value::Bool(_) => value,
    }
}

/// The text with `#` instead of ids, other words with digits, and times.
fn normalize_text(text: &str, ids: &[&str]) -> String {
    let mut text = text.to_owned();
    for id in ids {
        text = text.replace(id, "#");
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || ['-', '_', ':', '.', '+'].contains(&c);
    let mut normalized = String::new();
    for word in text.split_inclusive(|c| !is_part(c)) {
        let (word, end) = match word.char_indices().next_back() {
            Some((at, c)) if !is_part(c) => word.split_at(at),
            Some(_) | None => (word, ""),
        };
        let has_digit = word.contains(|c: char| c.is_ascii_digit());
        normalized.push_str(if has_digit { "#" } else { word });
        normalized.push_str(end);
    }
    normalized
}

fn normalize(response: &Response, ids: &[&str]) -> (u16, String, String) {
    let content_type = response.header("content-type").to_owned();
    let text = response.text();
    let body = match serde_json::from_str(text) {
        Ok(json) => normalize_json(json, ids).to_string(),
        Err(_) => normalize_text(text, ids),
    };
    (response.status.as_u16(), content_type, body)
}

/// An argument of an operation that names an object: its name, and its place in path, query or body.
#[derive(Debug, Clone)]
struct Argument {
    name: String,
    place: Place,
}

#[derive(Debug, Clone)]
enum Place {
    Path,
    Query,
    /// Names of the fields around it; `[]` is the first element of a list.
    Body(Vec<String>),
}

/// An operation of the API's route table.
struct Operation {
    name: String,
    method: Method,
    path: String,
    arguments: Vec<Argument>,
}

/// All operations except the event stream, from the document that is generated from the route table.
async fn operations(tenants: &Tenants) -> Vec<Operation> {
    let document = "/api/v1/openapi.json";
    let document = tenants.server.get_as(&tenants.ours, document).await;
    let document = document.expect_success();
    let mut operations = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let mut arguments = Vec::new();
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let place = match parameter["in"].as_str().unwrap() {
                    "path" => Place::Path,
                    _ => Place::Query,
                };
                let name = parameter["name"].as_str().unwrap().to_owned();
                arguments.push(Argument { name, place });
            }
            let schema = operation.pointer("/requestBody/content/application~1json/schema");
            if let Some(schema) = schema {
                body_arguments(schema, &mut Vec::new(), &mut arguments);
            }
            arguments.retain(|argument| Ids::missing().argument(&argument.name).is_some());
            let name = operation["operationId"].as_str().unwrap().to_owned();
            if name != "listen" {
                operations.push(Operation {
                    name,
                    method: method.to_uppercase().parse().unwrap(),
                    path: path.clone(),
                    arguments,
                });
            }
        }
    }
    operations
}

fn body_arguments(schema: &Value, around: &mut Vec<String>, found: &mut Vec<Argument>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        found.push(Argument {
            name: name.clone(),
            place: Place::Body(around.clone()),
        });
        around.push(name.clone());
        body_arguments(field, around, found);
        if field["items"].is_object() {
            around.push("[]".to_owned());
            body_arguments(&field["items"], around, found);
            around.pop();
        }
        around.pop();
    }
}

impl Operation {
    /// A valid request of our tenant, with one argument that names an object of `other`.
    fn request(&self, argument: &Argument, ours: &Ids, other: &Ids) -> Sample {
        let value = other.argument(&argument.name).unwrap();
        let (body, min_role) = body_and_role(&self.name);
        let mut body = variant(&self.name, argument, ours).or(body);
        let mut path = self.path.clone();
        let mut query = Vec::new();
        let mut named = Vec::new();
        if self.name == "search_sources" {
            query.push(format!("query={OUR_WORD}"));
            named.push(("query", json!(OUR_WORD)));
        }
        match &argument.place {
            Place::Path => {
                let value = value.as_str().unwrap();
                named.push((&argument.name, json!(value)));
                path = path.replace(&format!("{{{}}}", argument.name), value);
            }
            Place::Query => {
                query.push(format!("{}={}", argument.name, value.as_str().unwrap()));
                named.push((&argument.name, value));
            }
            Place::Body(around) => {
                let mut place = body.get_or_insert_with(|| json!({}));
                for name in around {
                    let found = match name.as_str() {
                        "[]" => place.get_mut(0),
                        name => place.get_mut(name),
                    };
                    place = found.unwrap_or_else(|| {
                        panic!("`{}`: add a body for {argument:?} to `variant`", self.name)
                    });
                }
                place[&argument.name] = value;
            }
        }
        let query = if query.is_empty() {
            String::new()
        } else {
            format!("?{}", query.join("&"))
        };
        let mut arguments = arguments(&self.path, body.as_ref(), ours);
        for (name, value) in named {
            arguments[name] = value;
        }
        Sample {
            operation: self.name.clone(),
            method: self.method.clone(),
            path: format!("/api/v1{}{query}", fill(&path, ours)),
            body,
            arguments,
            min_role,
        }
    }
}

/// A body in which the argument has an effect, if the usual one ignores or rejects it.
fn variant(operation: &str, argument: &Argument, ours: &Ids) -> Option<Value> {
    let step = json!({ "stepType": "search", "instructions": "more" });
    let branch = |action: &str, params: Value| {
        json!({
            "afterStepOrder": 1,
            "conditionExpression": "true",
            "ifTrueAction": action,
            "actionParams": params,
        })
    };
    let in_branch = match &argument.place {
        Place::Body(around) => around.iter().any(|name| name == "actionParams"),
        Place::Path | Place::Query => false,
    };
    let branch = match argument.name.as_str() {
        "dependsOn" => branch("add_steps", json!({ "steps": [step] })),
        _ => branch("skip_to", json!({})),
    };
    if in_branch {
        return Some(match operation {
            "modify_plan" => json!({ "action": "add_branch", "branch": branch }),
            _ => json!({
                "name": "n",
                "researchQuestion": "q",
                "steps": [step],
                "branchingConditions": [branch],
            }),
        });
    }
    Some(match (operation, argument.name.as_str()) {
        ("modify_plan", "stepId") => json!({ "action": "fail_step", "reason": "over" }),
        ("submit_user_decision", "stepId") if matches!(argument.place, Place::Body(_)) => {
            json!({ "decision": "approve", "edits": [{ "instructions": "more" }] })
        }
        ("modify_plan", "stepIds") => json!({ "action": "reorder_steps" }),
        ("modify_plan", "claimToken") => {
            json!({ "action": "fail_step", "stepId": ours.step, "reason": "over" })
        }
        ("store_research", "claimToken") => {
            json!({ "title": "t", "content": "words", "stepId": ours.step })
        }
        ("extract_data", "artifactId") => json!({ "schema": {} }),
        ("log_skill_execution", "executionId") => {
            json!({ "skillName": OUR_WORD, "status": "completed" })
        }
        _ => return None,
    })
}

async fn isolates_tenants(setup: Program) {
    let mut tenants = Tenants::new(setup).await;
    let before = tenants.their_view().await;
    let (their_ids, missing) = (tenants.their_ids.clone(), Ids::missing());
    let mut compared = 0;
    for operation in operations(&tenants).await {
        for argument in &operation.arguments {
            let mut responses = Vec::new();
            for other in [&their_ids, &missing] {
                let ours = tenants.our_ids().await;
                let request = operation.request(argument, &ours, other);
                let response = request.send(&tenants.server, Some(&tenants.ours)).await;
                let text = response.text().replace(&their_ids.session, "#");
                let text = text.replace(&their_ids.call, "#");
                let text = text.replace(&their_ids.idempotency_key, "#");
                assert!(!text.contains(THEIR_WORD), "{request:?}: {response:?}");
                let ids: Vec<&str> = other.all().into_iter().chain(ours.all()).collect();
                responses.push((normalize(&response, &ids), request));
            }
            let (missing, request) = responses.pop().unwrap();
            let (theirs, _) = responses.pop().unwrap();
            assert_eq!(theirs, missing, "{argument:?} of {request:?}");
            compared += 1;
        }
        // A request without another tenant's id returns nothing of it, either.
        if operation.arguments.is_empty() {
            let token = Some(tenants.ours.as_str());
            let (body, min_role) = body_and_role(&operation.name);
            let request = Sample {
                operation: operation.name.clone(),
                method: operation.method.clone(),
                path: format!("/api/v1{}", operation.path),
                body,
                arguments: json!({}),
                min_role,
            };
            let response = request.send(&tenants.server, token).await;
            assert!(!response.text().contains(THEIR_WORD), "{response:?}");
        }
    }
    println!("{compared} arguments of the API compared");
    assert!(compared >= 60, "{compared}");
    assert_eq!(tenants.their_view().await, before);
}

/// The same comparison with the tools of `/mcp`.
async fn isolates_tenants_of_tools(setup: Program) {
    let mut tenants = Tenants::new(setup).await;
    let before = tenants.their_view().await;
    let (their_ids, missing) = (tenants.their_ids.clone(), Ids::missing());
    let agent = SdkClient::connect(&tenants.server, Era::Handshake, Some(&tenants.ours)).await;
    let mut compared = 0;
    let tools = agent.tool_names().await;
    for operation in operations(&tenants).await {
        if !tools.contains(&operation.name) {
            continue;
        }
        for argument in &operation.arguments {
            let mut responses = Vec::new();
            for other in [&their_ids, &missing] {
                let ours = tenants.our_ids().await;
                let arguments = operation.request(argument, &ours, other).arguments;
                let response = agent.response(&operation.name, arguments).await;
                let ids: Vec<&str> = other.all().into_iter().chain(ours.all()).collect();
                let response = normalize_json(response, &ids);
                assert!(!response.to_string().contains(THEIR_WORD), "{response:#}");
                responses.push(response);
            }
            let [theirs, missing] = &responses[..] else {
                unreachable!("two responses")
            };
            assert_eq!(theirs, missing, "{argument:?} of {}", operation.name);
            compared += 1;
        }
    }
    println!("{compared} arguments of tools compared");
    assert!(compared >= 40, "{compared}");
    assert_eq!(tenants.their_view().await, before);
}

async fn isolates_tenants_on_pages(setup: Program) {
    let mut tenants = Tenants::new(setup).await;
    let before = tenants.their_view().await;
    let (their_ids, missing) = (tenants.their_ids.clone(), Ids::missing());
    let mut compared = 0;
    let (server, ours) = (Arc::clone(&tenants.server), tenants.ours.clone());
    let visitor = Visitor::sign_in(&server, &ours).await;
    for (method, path, route) in page_routes::ROUTES {
        let Route::Page(_, fields) = route else {
            continue;
        };
        let parameters = page_routes::parameters(path);
        let parameters = parameters
            .into_iter()
            .filter(|name| !["turn", "position"].contains(name));
        let mut any = false;
        for parameter in parameters {
            any = true;
            let mut responses = Vec::new();
            for other in [&their_ids, &missing] {
                let ours = tenants.our_ids().await;
                let filled = page_routes::fill(path, |name| {
                    if name == parameter {
                        other.clone()
                    } else {
                        ours.clone()
                    }
                });
                let response = visitor.visit(method, &filled, fields).await;
                assert_eq!(response.status.as_u16(), 404, "{filled}: {response:?}");
                let ids: Vec<&str> = other.all().into_iter().chain(ours.all()).collect();
                responses.push(normalize(&response, &ids));
            }
            assert_eq!(responses[0], responses[1], "`{parameter}` of {path}");
            compared += 1;
        }
        if !any && *method == "GET" {
            let page = visitor.visit(method, path, &[]).await;
            assert!(!page.text().contains(THEIR_WORD), "{path}: {page:?}");
        }
    }
    println!("{compared} parameters of pages compared");
    assert!(compared >= 24, "{compared}");
    assert_eq!(tenants.their_view().await, before);
}

#[tokio::test]
async fn other_tenants_ids_look_like_missing_ids_to_tools() {
    isolates_tenants_of_tools(program("tenant-tools")).await;
}

#[tokio::test]
async fn other_tenants_ids_look_like_missing_ids() {
    isolates_tenants(program("tenants")).await;
}

#[tokio::test]
async fn other_tenants_ids_look_like_missing_ids_on_postgresql() {
    isolates_tenants(program("tenants-postgres").on_postgres()).await;
}

#[tokio::test]
async fn other_tenants_ids_look_like_missing_ids_on_pages() {
    isolates_tenants_on_pages(program("page-tenants")).await;
}

#[tokio::test]
async fn other_tenants_ids_look_like_missing_ids_on_pages_on_postgresql() {
    isolates_tenants_on_pages(program("page-tenants-postgres").on_postgres()).await;
}
