//! A model on this machine, for the real binary: it knows what a few words have to do with each other,
//! and what stands in a text about moons.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

use serde_json::{Value, json};

/// Starts one; its address. It lives as long as the tests do.
pub(crate) fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for line in listener.incoming() {
            let Ok(mut line) = line else { return };
            let mut reader = BufReader::new(line.try_clone().expect("a second end"));
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut one = String::new();
                if reader.read_line(&mut one).is_err() || one.trim().is_empty() {
                    break;
                }
                if let Some(value) = one.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().expect("a length");
                }
                head.push_str(&one);
            }
            let mut body = vec![0; length];
            if reader.read_exact(&mut body).is_err() {
                continue;
            }
            let asked: Value = serde_json::from_slice(&body).expect("JSON");
            let answer = match head.contains("/embeddings") {
                true => embeddings(&asked),
                false => completion(&asked),
            };
            let answer = answer.to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                answer.len()
            );
            // Whoever asked may have gone away.
            drop(line.write_all(format!("{head}{answer}").as_bytes()));
        }
    });
    format!("http://{address}/v1")
}

fn embeddings(asked: &Value) -> Value {
    let texts = asked["input"].as_array().expect("texts");
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

fn completion(asked: &Value) -> Value {
    let question = asked["messages"].to_string();
    let count = ["Io", "Europa"]
        .iter()
        .filter(|moon| question.contains(**moon))
        .count();
    let said = format!("```json\n{{\"moons\": {count}}}\n```");
    json!({ "model": "told", "choices": [{ "message": { "content": said }, "finish_reason": "stop" }] })
}
