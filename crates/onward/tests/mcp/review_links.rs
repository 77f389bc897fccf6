//! How a user opens a review that an agent requested over stdio: the page of a server that runs on
//! the same database, the page of `serve.public_url`, or a command.

use onward_testbed::mcp_client::{Client, Era};
use onward_testbed::{Program, Server};
use serde_json::{Value, json};

use crate::features::links;
use crate::fixtures;
use crate::program;

/// The `url` and the `command` of a response.
fn place(response: &Value) -> (Option<&str>, Option<&str>) {
    (response["url"].as_str(), response["command"].as_str())
}

fn review_id(response: &Value) -> String {
    response["reviewId"].as_str().expect("review id").to_owned()
}

/// A plan whose step is under review, and the response of the request with the URIs of its links.
fn review(client: &mut Client) -> (String, Value, Vec<String>) {
    let plan = fixtures::create_plan(client, 1);
    let (step, _) = fixtures::claim_step(client, &plan);
    let request = json!({ "stepId": step, "summary": "Ready?" });
    let (response, uris) = links(client, "request_user_review", request);
    (plan, response, uris)
}

fn command(program: &Program, review: &str) -> String {
    let id = review.get(..8).expect("a UUID");
    format!("onward --database {} review show {id}", program.database)
}

fn page(server: &Server, review: &str) -> String {
    format!("{}/reviews/{review}", server.url)
}

/// The pending review in the responses that contain it.
fn pending(client: &mut Client, plan: &str) -> [Value; 2] {
    let arguments = json!({ "planId": plan });
    let next = client.call("get_next_step", arguments.clone());
    let context = client.call("get_research_context", arguments);
    [next["review"].clone(), context["review"].clone()]
}

#[test]
fn without_a_server_a_review_names_the_command_that_shows_it() {
    let program = program();
    let mut client = Client::start(&program, Era::Handshake);
    let (plan, response, uris) = review(&mut client);
    let id = review_id(&response);
    let expected = command(&program, &id);
    assert_eq!(place(&response), (None, Some(expected.as_str())));
    assert_eq!(uris, [format!("onward://plan/{plan}")]);
    for review in pending(&mut client, &plan) {
        assert_eq!(place(&review), (None, Some(expected.as_str())));
    }
    let mut arguments: Vec<&str> = expected.split(' ').skip(1).collect();
    arguments.push("--json");
    assert_eq!(program.run_json(&arguments)["reviewId"], id);
}

#[test]
fn a_review_links_the_page_of_the_running_server_only_while_it_runs() {
    let program = program();
    let mut client = Client::start(&program, Era::Handshake);
    let mut server = program.serve();
    for _ in 0..2 {
        let (plan, response, uris) = review(&mut client);
        let id = review_id(&response);
        let url = page(&server, &id);
        assert_eq!(place(&response), (Some(url.as_str()), None));
        assert_eq!(uris, [format!("onward://plan/{plan}"), url.clone()]);
        for review in pending(&mut client, &plan) {
            assert_eq!(place(&review), (Some(url.as_str()), None));
        }
        // A killed server leaves its record.
        let program = server.kill();
        let expected = command(&program, &id);
        for review in pending(&mut client, &plan) {
            assert_eq!(place(&review), (None, Some(expected.as_str())));
        }
        server = program.serve();
    }
}

#[test]
fn each_response_about_a_review_links_it() {
    let program = program();
    let mut client = Client::start(&program, Era::Handshake);
    let server = program.serve();
    let mut approved = fixtures::plan(1);
    approved["requiresApproval"] = true.into();
    let created = client.call("create_research_plan", approved);
    let url = page(&server, &review_id(&created["approval"]));
    assert_eq!(place(&created["approval"]), (Some(url.as_str()), None));
    let mut gated = fixtures::plan(1);
    gated["steps"][0]["reviewRequired"] = true.into();
    let created = client.call("create_research_plan", gated);
    let plan = created["planId"].as_str().expect("plan id");
    let (step, _) = fixtures::claim_step(&mut client, plan);
    let result = json!({ "stepId": step, "resultSummary": "done" });
    let submitted = client.call("submit_step_result", result);
    let url = page(&server, &review_id(&submitted));
    assert_eq!(place(&submitted), (Some(url.as_str()), None));
    let decision = json!({ "stepId": step, "decision": "approve" });
    let rejection = client.call_rejected("submit_user_decision", decision.clone());
    assert!(rejection.error["hint"].as_str().unwrap().contains(&url));
    let program = server.stop();
    let rejection = client.call_rejected("submit_user_decision", decision);
    let expected = command(&program, &review_id(&submitted));
    assert!(
        rejection.error["hint"]
            .as_str()
            .unwrap()
            .contains(&expected)
    );
}

#[test]
fn a_review_links_the_public_url() {
    let program = program().with_config("[serve]\npublic_url = \"https://plans.example.org\"");
    let mut client = Client::start(&program, Era::Handshake);
    let (_, response, _) = review(&mut client);
    let url = format!("https://plans.example.org/reviews/{}", review_id(&response));
    assert_eq!(place(&response), (Some(url.as_str()), None));
}

#[test]
fn the_command_needs_no_options_for_the_default_database() {
    let program = program().with_database(String::new());
    let mut client = Client::start(&program, Era::Handshake);
    let (_, response, _) = review(&mut client);
    let id = review_id(&response);
    let expected = format!("onward review show {}", &id[..8]);
    assert_eq!(place(&response), (None, Some(expected.as_str())));
    let shown = program.run_json(&["review", "show", &id[..8], "--json"]);
    assert_eq!(shown["reviewId"], id);
}
