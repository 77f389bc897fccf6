//! A model API: embeddings that relate a few words, and a completion that counts moons.

use serde_json::{Value, json};

use crate::mock_server::{MockServer, Reply};

/// Starts the API and returns its base URL.
pub fn start() -> String {
    let server = MockServer::with_handler(|request| {
        Reply::json(&if request.path.contains("/embeddings") {
            embeddings(&request.json())
        } else {
            completion(&request.json())
        })
    });
    format!("{}/v1", server.url)
}

fn embeddings(request: &Value) -> Value {
    let texts = request["input"].as_array().expect("texts");
    let data = texts.iter().enumerate().map(|(index, text)| {
        let text = text.as_str().unwrap_or_default().to_lowercase();
        let about = |words: &[&str]| {
            let found = words.iter().any(|word| text.contains(word));
            if found { 1.0 } else { -0.1 }
        };
        let numbers = [
            about(&["whale", "orca", "cetacean"]),
            about(&["loaf", "bread"]),
            -0.1,
        ];
        json!({ "index": index, "embedding": numbers })
    });
    json!({ "data": data.collect::<Vec<_>>() })
}

fn completion(request: &Value) -> Value {
    let messages = request["messages"].to_string();
    let count = ["Io", "Europa"]
        .iter()
        .filter(|moon| messages.contains(**moon))
        .count();
    let text = format!("```json\n{{\"moons\": {count}}}\n```");
    let choice = json!({ "message": { "content": text }, "finish_reason": "stop" });
    json!({ "model": "server-model", "choices": [choice] })
}
