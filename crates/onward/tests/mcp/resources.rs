//! Resources, prompts and completion.

use serde_json::{Value, json};

use crate::agent::{Agent, ERAS, Era};
use crate::place::Place;
use crate::works;

fn read(agent: &mut Agent, uri: &str) -> (String, String) {
    let answer = agent.ask("resources/read", json!({ "uri": uri }));
    let contents = &answer["result"]["contents"][0];
    assert_eq!(contents["uri"], uri, "{answer}");
    let text = |name: &str| contents[name].as_str().unwrap().to_owned();
    (text("mimeType"), text("text"))
}

#[test]
fn there_are_the_plans_and_who_asks() {
    for era in ERAS {
        let place = Place::file();
        let mut agent = Agent::start(&place, era);
        let plan = works::created(&mut agent, 1);
        let (step, token) = works::next(&mut agent, &plan);
        let list = agent.ask("resources/list", json!({}));
        let uris: Vec<&str> = list["result"]["resources"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|resource| resource["uri"].as_str())
            .collect();
        let own = format!("onward://plan/{plan}");
        assert_eq!(uris, ["onward://plans", "onward://user/profile", &own]);
        let (kind, text) = read(&mut agent, "onward://plans");
        let plans: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(kind, "application/json");
        assert_eq!(plans["plans"][0]["planId"], plan);
        let (kind, text) = read(&mut agent, &own);
        assert_eq!(kind, "text/markdown");
        assert!(
            text.starts_with("# A plan\n") && text.contains("Do 1"),
            "{text}"
        );
        let (_, text) = read(&mut agent, &format!("{own}/audit"));
        let audit: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(audit["planId"], plan);
        let events = audit["events"].as_array().unwrap();
        assert_eq!(events[0]["eventType"], "plan_modified");
        assert_eq!(events[1]["eventType"], "step_started");
        assert_eq!(events[1]["stepId"], step);
        assert_eq!(events[1]["actor"], "user:ada");
        assert!(!text.contains(&token), "a trail shows no token");
        let (_, text) = read(&mut agent, "onward://user/profile");
        let profile: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(profile["user"], "user:ada");
        assert_eq!(profile["tenant"], "local");
    }
}

#[test]
fn the_whole_trail_is_there_however_long() {
    let place = Place::file();
    let mut agent = Agent::start(&place, Era::Handshake);
    let plan = works::created(&mut agent, 1);
    let (step, _) = works::next(&mut agent, &plan);
    let ids: Vec<u64> = (0..1_100)
        .map(|_| agent.send_call("report_step_progress", json!({ "stepId": step })))
        .collect();
    for _ in ids {
        agent.hear();
    }
    let (_, text) = read(&mut agent, &format!("onward://plan/{plan}/audit"));
    let audit: Value = serde_json::from_str(&text).unwrap();
    let events = audit["events"].as_array().unwrap();
    let numbers: Vec<u64> = events
        .iter()
        .map(|event| event["seq"].as_u64().unwrap())
        .collect();
    let all: Vec<u64> = (1..=1_102).collect();
    assert_eq!(numbers, all);
}

#[test]
fn what_is_not_there_is_not_found() {
    for (era, code) in [(Era::Handshake, -32002), (Era::Stateless, -32602)] {
        let place = Place::file();
        let mut agent = Agent::start(&place, era);
        for uri in [
            "onward://plan/00000000-0000-4000-8000-000000000000",
            "onward://plan/nonsense/audit",
            "onward://session/nobody",
            "onward://session/",
            "onward://session/%ff",
            "onward://nothing",
            "file:///etc/passwd",
        ] {
            let answer = agent.ask("resources/read", json!({ "uri": uri }));
            assert_eq!(answer["error"]["code"], code, "{uri}: {answer}");
            assert_eq!(answer["error"]["data"]["uri"], uri, "{answer}");
        }
    }
}

#[test]
fn templates_and_prompts_name_what_they_need() {
    let place = Place::file();
    let mut agent = Agent::start(&place, Era::Handshake);
    let templates = agent.ask("resources/templates/list", json!({}));
    let templates = templates["result"]["resourceTemplates"].as_array().unwrap();
    assert_eq!(templates[0]["uriTemplate"], "onward://plan/{planId}");
    assert_eq!(templates[1]["uriTemplate"], "onward://plan/{planId}/audit");
    assert_eq!(templates[2]["uriTemplate"], "onward://session/{sessionId}");
    let prompts = agent.ask("prompts/list", json!({}));
    let names: Vec<(&str, &str)> = prompts["result"]["prompts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|prompt| {
            let argument = &prompt["arguments"][0];
            assert_eq!(argument["required"], true);
            (
                prompt["name"].as_str().unwrap(),
                argument["name"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        names,
        [
            ("run_plan", "planId"),
            ("resume_plan", "planId"),
            ("design_plan", "question")
        ]
    );
}

#[test]
fn a_prompt_says_the_loop_and_names_tools_that_there_are() {
    let place = Place::file();
    let mut agent = Agent::start(&place, Era::Stateless);
    let plan = works::created(&mut agent, 1);
    let tools = agent.tools();
    for (prompt, argument, value, says) in [
        ("run_plan", "planId", plan.as_str(), "`get_next_step`"),
        (
            "resume_plan",
            "planId",
            plan.as_str(),
            "`includeStalled: true`",
        ),
        (
            "design_plan",
            "question",
            "Why is it so?",
            "`create_research_plan`",
        ),
    ] {
        let got = agent.ask(
            "prompts/get",
            json!({ "name": prompt, "arguments": { argument: value } }),
        );
        let text = got["result"]["messages"][0]["content"]["text"].as_str();
        let text = text.unwrap_or_else(|| panic!("{got}"));
        assert!(text.contains(says) && text.contains(value), "{text}");
        // Whatever looks like a tool is one.
        for word in text.split('`').skip(1).step_by(2) {
            let verbs = [
                "get_", "submit_", "create_", "report_", "request_", "modify_", "list_",
            ];
            if verbs.iter().any(|verb| word.starts_with(verb)) {
                assert!(tools.iter().any(|tool| tool["name"] == word), "{word}");
            }
        }
    }
    for (name, arguments) in [
        ("run_plan", json!({ "planId": "nonsense" })),
        ("run_plan", json!({})),
        ("design_plan", json!({ "question": " " })),
        ("sing", json!({})),
    ] {
        let params = json!({ "name": name, "arguments": arguments });
        let answer = agent.ask("prompts/get", params);
        assert_eq!(answer["error"]["code"], -32602, "{name}: {answer}");
    }
}

#[test]
fn ids_of_plans_are_completed() {
    let place = Place::file();
    let mut agent = Agent::start(&place, Era::Handshake);
    let plan = works::created(&mut agent, 1);
    let mut complete = |value: &str, name: &str| {
        let answer = agent.ask(
            "completion/complete",
            json!({
                "ref": { "type": "ref/prompt", "name": "run_plan" },
                "argument": { "name": name, "value": value },
            }),
        );
        answer["result"]["completion"]["values"].clone()
    };
    assert_eq!(complete(&plan[..5], "planId"), json!([plan]));
    assert_eq!(complete("a PLAN", "planId"), json!([plan]));
    assert_eq!(complete("zzz", "planId"), json!([]));
    assert_eq!(complete("", "question"), json!([]));
}
