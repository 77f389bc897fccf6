//! The tools that ask a model, with one on this machine and with none.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::agent::{Agent, ERAS, Era};
use crate::model;
use crate::place::Place;

fn with_models(place: &Place, era: Era) -> Agent {
    let url = model::start();
    let mut command = place.onward();
    command.arg("mcp");
    for name in ["EMBEDDINGS", "EXTRACTION"] {
        command.env(format!("ONWARD_{name}_URL"), &url);
        command.env(format!("ONWARD_{name}_MODEL"), "m");
    }
    Agent::of(&mut command, era, json!({}))
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": { "moons": { "type": "integer" } },
        "required": ["moons"],
    })
}

#[test]
fn what_is_stored_is_soon_found_by_what_it_means() {
    for (place, era) in [Place::file(), Place::server()].into_iter().zip(ERAS) {
        let mut agent = with_models(&place, era);
        for (title, content) in [("Sea", "An orca hunts."), ("Land", "A loaf of bread.")] {
            agent.call(
                "store_research",
                json!({ "title": title, "content": content }),
            );
        }
        let began = Instant::now();
        let found = loop {
            let found = agent.call("search_sources", json!({ "query": "cetacean" }));
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
        let found = agent.call("search_sources", json!({ "query": "orca" }));
        let first = &found["results"][0];
        assert_eq!(
            (&first["keywordRank"], &first["semanticRank"]),
            (&json!(1), &json!(1))
        );
        assert!((first["score"].as_f64().unwrap() - 2.0 / 61.0).abs() < 1e-9);
    }
}

#[test]
fn data_is_extracted_out_of_a_text_or_an_artifact() {
    let place = Place::file();
    let mut agent = with_models(&place, Era::Handshake);
    let done = agent.call(
        "extract_data",
        json!({ "schema": schema(), "sourceText": "Io", "instructions": "count" }),
    );
    assert_eq!(done["data"], json!({ "moons": 1 }));
    assert_eq!(
        (&done["valid"], &done["model"]),
        (&json!(true), &json!("told"))
    );
    let stored = json!({ "title": "Moons", "content": "Io and Europa" });
    let artifact = agent.call("store_research", stored);
    let done = agent.call(
        "extract_data",
        json!({ "schema": schema(), "artifactId": artifact["artifactId"] }),
    );
    assert_eq!(done["data"], json!({ "moons": 2 }));
    let asks_more = json!({ "schema": { "required": ["planets"] }, "sourceText": "Io" });
    let done = agent.call("extract_data", asks_more);
    assert_eq!(done["valid"], false);
    assert!(
        done["issues"][0]["message"]
            .as_str()
            .unwrap()
            .contains("planets"),
        "{done}"
    );
}

#[test]
fn without_a_model_the_agent_is_told_how_to_get_one() {
    let place = Place::file();
    for era in ERAS {
        let mut agent = Agent::start(&place, era);
        let asked = json!({ "schema": schema(), "sourceText": "Io" });
        let refused = agent.refused("extract_data", asked);
        assert_eq!(refused.code, "not_configured");
        let hint = refused.error["hint"].as_str().unwrap();
        assert!(hint.contains("[extraction]"), "{hint}");
        let found = agent.call("search_sources", json!({ "query": "words" }));
        assert_eq!(found["mode"], "keyword");
    }
}

#[test]
fn what_cannot_be_extracted_is_refused_by_its_field() {
    let place = Place::file();
    let mut agent = with_models(&place, Era::Stateless);
    for (asked, path) in [
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
        let refused = agent.refused("extract_data", asked.clone());
        assert_eq!(refused.code, "invalid_input", "{asked}");
        assert_eq!(refused.paths(), [path], "{asked}");
    }
    for id in ["nonsense", "00000000-0000-4000-8000-000000000000"] {
        let asked = json!({ "schema": schema(), "artifactId": id });
        let refused = agent.refused("extract_data", asked);
        assert_eq!(refused.error["message"], format!("no artifact `{id}`"));
    }
    // The next call works.
    agent.call(
        "extract_data",
        json!({ "schema": schema(), "sourceText": "Io" }),
    );
}
