//! A local model server for the real binary: embeddings that relate a few words, and a completion
//! that counts moons.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

use serde_json::{Value, json};

/// Starts the server and returns its URL. It runs until the test process exits.
pub(crate) fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("port binds");
    let address = listener.local_addr().expect("listener has an address");
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let Ok(mut connection) = connection else {
                return;
            };
            let mut reader = BufReader::new(connection.try_clone().expect("socket clones"));
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).is_err() || line.trim().is_empty() {
                    break;
                }
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().expect("length is a number");
                }
                head.push_str(&line);
            }
            let mut body = vec![0; length];
            if reader.read_exact(&mut body).is_err() {
                continue;
            }
            let request: Value = serde_json::from_slice(&body).expect("request is JSON");
            let response = if head.contains("/embeddings") {
                embeddings(&request)
            } else {
                completion(&request)
            };
            let response = response.to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                response.len()
            );
            // The client may have disconnected.
            drop(connection.write_all(format!("{head}{response}").as_bytes()));
        }
    });
    format!("http://{address}/v1")
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
