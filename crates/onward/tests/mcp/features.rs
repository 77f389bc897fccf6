//! Links, annotations, cache hints, icons, completion, and the names of `--tools plan`.

use onward_engine::session::HookSource;
use onward_testbed::mcp_client::{Client, ERAS, Era};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::engine::with_engine;
use crate::fixtures;
use crate::program;

/// The URIs of the links in a tool's result.
pub(crate) fn links(client: &mut Client, tool: &str, arguments: Value) -> (Value, Vec<String>) {
    let id = client.send_call(tool, arguments);
    let response = client.response_to(id);
    let result = &response["result"];
    assert_ne!(result["isError"], true, "{response}");
    let blocks = result["content"].as_array().expect("content");
    let links = blocks
        .iter()
        .filter(|block| block["type"] == "resource_link");
    let uris = links.map(|link| link["uri"].as_str().expect("URI").to_owned());
    (result["structuredContent"].clone(), uris.collect())
}

#[test]
fn responses_link_the_plan_the_stored_texts_and_nothing_in_the_loop() {
    for era in ERAS {
        let dir = program();
        let mut client = Client::start(&dir, era);
        let (plan, uris) = links(&mut client, "create_research_plan", fixtures::plan(1));
        let plan_uri = format!("onward://plan/{}", plan["planId"].as_str().unwrap());
        assert_eq!(uris, [plan_uri.as_str()]);
        let next = json!({ "planId": plan["planId"] });
        let (step, uris) = links(&mut client, "get_next_step", next.clone());
        assert!(uris.is_empty(), "{uris:?}");
        let note = json!({ "title": "t", "content": "c" });
        let (artifact, uris) = links(&mut client, "store_research", note);
        let artifact = artifact["artifactId"].as_str().unwrap();
        assert_eq!(uris, [format!("onward://artifact/{artifact}")]);
        let result = json!({ "stepId": step["stepId"], "resultSummary": "done" });
        client.call("submit_step_result", result);
        let (_, uris) = links(&mut client, "get_next_step", next);
        assert_eq!(uris, [plan_uri.as_str()]);
        let output = json!({ "planId": plan["planId"], "title": "t", "content": "c" });
        let (output, uris) = links(&mut client, "store_research_output", output);
        let output = output["outputId"].as_str().unwrap();
        assert_eq!(uris, [format!("onward://output/{output}"), plan_uri]);
        for uri in uris {
            let read = client.request("resources/read", json!({ "uri": uri }));
            assert!(read["result"]["contents"][0]["text"].is_string(), "{read}");
        }
    }
}

#[test]
fn a_client_of_an_older_version_gets_no_links() {
    let dir = program();
    let mut command = dir.command(&["mcp"]);
    let mut client = Client::from_command(&mut command, Era::Stateless, json!({}));
    let initialize = json!({
        "jsonrpc": "2.0", "id": 1_000, "method": "initialize",
        "params": {
            "protocolVersion": "2025-03-26",
            "capabilities": {},
            "clientInfo": { "name": "old", "version": "0" },
        },
    });
    client.send_message(&initialize);
    let response = client.response_to(1_000);
    assert_eq!(response["result"]["protocolVersion"], "2025-03-26");
    client.send_message(&json!({
        "jsonrpc": "2.0", "id": 1_001, "method": "tools/call",
        "params": { "name": "create_research_plan", "arguments": fixtures::plan(1) },
    }));
    let response = client.response_to(1_001);
    let content = response["result"]["content"].as_array().expect("content");
    assert_eq!(content.len(), 1, "{response}");
}

#[test]
fn resources_have_annotations_sizes_and_icons() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    fixtures::create_plan(&mut client, 1);
    let list = client.request("resources/list", json!({}));
    let resources = list["result"]["resources"].as_array().expect("resources");
    assert_eq!(resources.len(), 4);
    for resource in resources {
        let annotations = &resource["annotations"];
        assert_eq!(annotations["audience"], json!(["user", "assistant"]));
        assert!(annotations["priority"].is_number(), "{resource}");
        assert!(resource["icons"][0]["src"].is_string(), "{resource}");
    }
    for resource in resources {
        let read = client.request("resources/read", json!({ "uri": resource["uri"] }));
        let text = read["result"]["contents"][0]["text"]
            .as_str()
            .expect("text");
        assert_eq!(resource["size"], text.len(), "{resource}");
    }
    for resource in [&resources[0], &resources[3]] {
        assert!(resource["annotations"]["lastModified"].is_string());
    }
}

#[test]
fn constant_lists_can_be_cached_and_have_icons() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    for (method, list) in [
        ("server/discover", None),
        ("tools/list", Some("tools")),
        ("prompts/list", Some("prompts")),
        ("resources/templates/list", Some("resourceTemplates")),
    ] {
        let response = client.request(method, json!({}));
        let result = &response["result"];
        assert!(result["ttlMs"].as_u64() > Some(0), "{method}: {response}");
        assert_eq!(result["cacheScope"], "public", "{method}");
        let entries = list.and_then(|list| result[list].as_array());
        for entry in entries.into_iter().flatten() {
            assert!(entry["icons"][0]["src"].is_string(), "{entry}");
        }
    }
    let response = client.request("resources/list", json!({}));
    assert_eq!(response["result"]["ttlMs"], 0);
    assert_eq!(response["result"]["cacheScope"], "private");
}

#[test]
fn template_arguments_are_completed() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let plan = fixtures::create_plan(&mut client, 1);
    let note = json!({ "title": "Tidal figures", "content": "c" });
    let artifact = client.call("store_research", note)["artifactId"].clone();
    let report = json!({ "planId": plan, "title": "Report", "content": "c" });
    let output = client.call("store_research_output", report);
    let output = output["outputId"].as_str().unwrap();
    with_engine(&dir, async |engine, caller| {
        let source = HookSource {
            session: "Session-of-Ann".to_owned(),
            agent: "codex".to_owned(),
            ..HookSource::default()
        };
        engine.end_turn(caller, source).await.unwrap();
    });
    let mut complete = |template: &str, name: &str, value: &str| {
        let request = json!({
            "ref": { "type": "ref/resource", "uri": template },
            "argument": { "name": name, "value": value },
        });
        let response = client.request("completion/complete", request);
        response["result"]["completion"]["values"].clone()
    };
    assert_eq!(
        complete("onward://plan/{planId}", "planId", "a pl"),
        json!([plan])
    );
    assert_eq!(
        complete("onward://artifact/{artifactId}", "artifactId", "tidal fig"),
        json!([artifact])
    );
    assert_eq!(
        complete("onward://output/{outputId}", "outputId", &output[..13]),
        json!([output])
    );
    let sessions = "onward://session/{sessionId}";
    assert_eq!(
        complete(sessions, "sessionId", "of-a"),
        json!(["Session-of-Ann"])
    );
    assert_eq!(complete(sessions, "sessionId", "no such"), json!([]));
}

#[test]
fn titles_contain_the_words_that_agents_search_for() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let tools = client.tools();
    let titles = tools.iter().filter_map(|tool| tool["title"].as_str());
    let titles = titles.collect::<Vec<_>>().join("\n").to_lowercase();
    for word in ["plan", "task", "todo", "resume", "review"] {
        assert!(titles.contains(word), "{word}");
    }
}

#[test]
fn the_tool_set_plan_uses_names_without_research() {
    let dir = program();
    let mut core = Client::with_options(&dir, Era::Stateless, &["--tools", "core"], json!({}));
    let mut client = Client::with_options(&dir, Era::Stateless, &["--tools", "plan"], json!({}));
    let tools = client.tools();
    assert_eq!(tools.len(), core.tools().len());
    let contract = [
        "create_research_plan",
        "get_research_context",
        "store_research_output",
    ];
    for tool in &tools {
        let text = json!([tool["name"], tool["description"], tool["inputSchema"]]).to_string();
        for name in contract {
            assert!(!text.contains(name), "{text}");
        }
    }
    let names: Vec<&str> = tools
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    for alias in ["create_plan", "get_plan_context", "store_plan_output"] {
        assert!(names.contains(&alias), "{names:?}");
    }
    let info = client.request("server/discover", json!({}));
    let instructions = info["result"]["instructions"]
        .as_str()
        .expect("instructions");
    assert!(contract.iter().all(|name| !instructions.contains(name)));

    let created = client.call("create_plan", fixtures::plan(1));
    let plan = created["planId"].as_str().expect("plan id").to_owned();
    let (step, _) = fixtures::claim_step(&mut client, &plan);
    let result = json!({ "stepId": step, "resultSummary": "done" });
    client.call("submit_step_result", result);
    let complete = client.call("get_next_step", json!({ "planId": plan }));
    assert!(
        complete["next"]
            .as_str()
            .is_some_and(|next| next.contains("`store_plan_output`")),
        "{complete}"
    );
    let context = client.call("get_plan_context", json!({ "planId": plan }));
    assert!(
        context["next"]
            .as_str()
            .is_some_and(|next| next.contains("`store_plan_output`")),
        "{context}"
    );
    let prompt = json!({ "name": "design_plan", "arguments": { "question": "q" } });
    let prompt = client.request("prompts/get", prompt);
    assert!(prompt.to_string().contains("`create_plan`"), "{prompt}");
    // The contract's name stays valid; the other sets do not have the alias.
    client.call("create_research_plan", fixtures::plan(1));
    let unknown = core.request(
        "tools/call",
        json!({ "name": "create_plan", "arguments": {} }),
    );
    assert_eq!(unknown["error"]["code"], -32602);
}

#[test]
fn a_large_plan_has_no_size() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let mut large = fixtures::plan(8);
    for step in large["steps"].as_array_mut().unwrap() {
        step["instructions"] = "i".repeat(9_000).into();
    }
    client.call("create_research_plan", large);
    let list = client.request("resources/list", json!({}));
    let plan = &list["result"]["resources"][3];
    assert_eq!(plan["mimeType"], "text/markdown", "{list}");
    assert_eq!(plan["size"], Value::Null, "{list}");
}

#[test]
fn the_skill_is_listed_with_the_digest_of_its_file() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let discovered = client.request("server/discover", json!({}));
    let extensions = &discovered["result"]["capabilities"]["extensions"];
    assert_eq!(extensions["io.modelcontextprotocol/skills"], json!({}));
    let list = client.request("skills/list", json!({}));
    let result = &list["result"];
    assert_eq!(result["resultType"], "complete", "{list}");
    assert_eq!(result["cacheScope"], "public", "{list}");
    let [skill] = result["skills"].as_array().unwrap().as_slice() else {
        panic!("one skill: {list}");
    };
    let uri = skill["uri"].as_str().unwrap();
    let read = client.request("resources/read", json!({ "uri": uri }));
    let text = read["result"]["contents"][0]["text"].as_str().unwrap();
    let digest = Sha256::digest(text);
    let digest = digest.iter().map(|byte| format!("{byte:02x}"));
    let expected = json!([{
        "uri": uri,
        "digest": format!("sha256:{}", digest.collect::<String>()),
        "size": text.len(),
    }]);
    assert_eq!(skill["resources"], expected);
    for field in ["name", "description"] {
        let value = skill["frontmatter"][field].as_str().unwrap();
        assert!(text.contains(&format!("\n{field}: {value}\n")), "{field}");
    }
    let one = client.request("skills/get", json!({ "uri": uri }));
    assert_eq!(&one["result"]["skill"], skill);
    for params in [json!({ "uri": "skill://other/SKILL.md" }), json!({})] {
        let unknown = client.request("skills/get", params);
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    }
}
