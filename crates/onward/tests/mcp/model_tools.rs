//! Semantic search and extraction, with a local model server and without one.

use std::time::{Duration, Instant};

use onward_testbed::mcp_client::{Client, ERAS, Era};
use onward_testbed::{Program, model_api};
use serde_json::{Value, json};

use crate::program;

fn with_models(dir: &Program, era: Era) -> Client {
    let url = model_api::start();
    let mut command = dir.command(&[]);
    command.arg("mcp");
    for name in ["EMBEDDINGS", "EXTRACTION"] {
        command.env(format!("ONWARD_{name}__URL"), &url);
        command.env(format!("ONWARD_{name}__MODEL"), "m");
    }
    Client::from_command(&mut command, era, json!({}))
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": { "moons": { "type": "integer" } },
        "required": ["moons"],
    })
}

#[test]
fn finds_stored_research_by_embeddings() {
    for (dir, era) in [program(), program().on_postgres()].into_iter().zip(ERAS) {
        let mut client = with_models(&dir, era);
        for (title, content) in [("Sea", "An orca hunts."), ("Land", "A loaf of bread.")] {
            client.call(
                "store_research",
                json!({ "title": title, "content": content }),
            );
        }
        let began = Instant::now();
        let found = loop {
            let found = client.call("search_sources", json!({ "query": "cetacean" }));
            assert_eq!(found["mode"], "hybrid");
            if found["results"].as_array().unwrap().len() == 2 {
                break found;
            }
            assert!(began.elapsed() < Duration::from_secs(30), "{found}");
            std::thread::yield_now();
        };
        let first = &found["results"][0];
        assert_eq!(first["title"], "Sea");
        assert_eq!(first["semanticRank"], 1);
        assert!(first.get("keywordRank").is_none(), "{first}");
        assert!((first["score"].as_f64().unwrap() - 1.0 / 61.0).abs() < 1e-9);
        let found = client.call("search_sources", json!({ "query": "orca" }));
        let first = &found["results"][0];
        assert_eq!(
            (&first["keywordRank"], &first["semanticRank"]),
            (&json!(1), &json!(1))
        );
        assert!((first["score"].as_f64().unwrap() - 2.0 / 61.0).abs() < 1e-9);
    }
}

#[test]
fn extracts_data_from_a_text_or_an_artifact() {
    let dir = program();
    let mut client = with_models(&dir, Era::Handshake);
    let extracted = client.call(
        "extract_data",
        json!({ "schema": schema(), "sourceText": "Io", "instructions": "count" }),
    );
    assert_eq!(extracted["data"], json!({ "moons": 1 }));
    assert_eq!(
        (&extracted["valid"], &extracted["model"]),
        (&json!(true), &json!("server-model"))
    );
    let stored = json!({ "title": "Moons", "content": "Io and Europa" });
    let artifact = client.call("store_research", stored);
    let extracted = client.call(
        "extract_data",
        json!({ "schema": schema(), "artifactId": artifact["artifactId"] }),
    );
    assert_eq!(extracted["data"], json!({ "moons": 2 }));
    let unmet = json!({ "schema": { "required": ["planets"] }, "sourceText": "Io" });
    let extracted = client.call("extract_data", unmet);
    assert_eq!(extracted["valid"], false);
    assert_eq!(extracted["issues"][0]["path"], "");
}

#[test]
fn reports_a_missing_model() {
    let dir = program();
    for era in ERAS {
        let mut client = Client::start(&dir, era);
        let arguments = json!({ "schema": schema(), "sourceText": "Io" });
        let rejected = client.call_rejected("extract_data", arguments);
        assert_eq!(rejected.code, "not_configured");
        let hint = rejected.error["hint"].as_str().unwrap();
        assert!(hint.contains("`[extraction]`"), "{hint}");
        let found = client.call("search_sources", json!({ "query": "words" }));
        assert_eq!(found["mode"], "keyword");
    }
}

#[test]
fn rejects_invalid_extractions_with_the_path() {
    let dir = program();
    let mut client = with_models(&dir, Era::Stateless);
    for (arguments, path) in [
        (json!({ "schema": schema() }), "sourceText"),
        (
            json!({ "schema": schema(), "sourceText": "a", "artifactId": "b" }),
            "artifactId",
        ),
        (
            json!({ "schema": schema(), "sourceText": " " }),
            "sourceText",
        ),
        (
            json!({ "schema": { "$ref": "https://example.org/a" }, "sourceText": "a" }),
            "schema",
        ),
        (
            json!({ "schema": { "$ref": "#" }, "sourceText": "a" }),
            "schema",
        ),
        (
            json!({ "schema": { "type": "moon" }, "sourceText": "a" }),
            "schema",
        ),
        (json!({ "schema": "object", "sourceText": "a" }), "schema"),
    ] {
        let rejected = client.call_rejected("extract_data", arguments.clone());
        assert_eq!(rejected.code, "invalid_input", "{arguments}");
        assert_eq!(rejected.paths(), [path], "{arguments}");
    }
    for id in ["nonsense", "00000000-0000-4000-8000-000000000000"] {
        let arguments = json!({ "schema": schema(), "artifactId": id });
        let rejected = client.call_rejected("extract_data", arguments);
        assert_eq!(rejected.code, "invalid_input");
        let message = rejected.error["message"].as_str().unwrap();
        assert!(message.contains(id), "{message}");
    }
    // The server still accepts calls.
    client.call(
        "extract_data",
        json!({ "schema": schema(), "sourceText": "Io" }),
    );
}
