//! A conversation in the middle of a long turn, which grows by one step with every request.

use serde_json::{Value, json};

/// The APIs and their paths.
pub(crate) const APIS: [(&str, &str); 3] = [
    ("Messages", "/v1/messages"),
    ("Chat Completions", "/v1/chat/completions"),
    ("Responses", "/v1/responses"),
];

/// Length of a tool result, in bytes.
const RESULT_BYTES: usize = 2_000;

/// A conversation.
pub(crate) struct Conversation {
    api: &'static str,
    streams: bool,
    rows: Vec<String>,
    steps: usize,
}

impl Conversation {
    /// A conversation of about this length.
    pub(crate) fn new(api: &'static str, streams: bool, length: usize) -> Self {
        let prompt = match api {
            "Responses" => json!({ "type": "message", "role": "user", "content": "Tides?" }),
            _ => json!({ "role": "user", "content": "Tides?" }),
        };
        let mut conversation = Self {
            api,
            streams,
            rows: vec![prompt.to_string()],
            steps: 0,
        };
        while conversation.rows.iter().map(String::len).sum::<usize>() < length {
            conversation.step();
        }
        conversation
    }

    fn step(&mut self) {
        self.steps += 1;
        let id = format!("call_{}", self.steps);
        // Another name each time: an output that differs only in its numbers would be a loop.
        let digits = self.steps.to_string();
        let name: String = digits.bytes().map(|digit| char::from(digit + 49)).collect();
        let line = format!("{}: \"high\" tide at harbour {name}\n", self.steps);
        let output = line.repeat(RESULT_BYTES / line.len());
        let input = json!({ "command": format!("cat tides-{}.md", self.steps) });
        let [call, result]: [Value; 2] = match self.api {
            "Messages" => [
                json!({ "role": "assistant", "content": [
                    { "type": "tool_use", "id": id, "name": "Bash", "input": input } ] }),
                json!({ "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": id, "content": output } ] }),
            ],
            "Responses" => [
                json!({ "type": "function_call", "call_id": id, "name": "Bash",
                    "arguments": input.to_string() }),
                json!({ "type": "function_call_output", "call_id": id, "output": output }),
            ],
            _ => [
                json!({ "role": "assistant", "content": null, "tool_calls": [
                    { "id": id, "type": "function",
                      "function": { "name": "Bash", "arguments": input.to_string() } } ] }),
                json!({ "role": "tool", "tool_call_id": id, "content": output }),
            ],
        };
        self.rows.push(call.to_string());
        self.rows.push(result.to_string());
    }

    /// The next request. Drops the oldest steps regularly, so that the length stays about the same.
    pub(crate) fn next(&mut self) -> String {
        self.step();
        let list = if self.api == "Responses" {
            "input"
        } else {
            "messages"
        };
        let rows = self.rows.join(",");
        if self.steps.is_multiple_of(20) {
            self.rows.drain(1..41);
        }
        format!(
            r#"{{"model":"m","tools":[{{"name":"Bash"}}],"{list}":[{rows}],"stream":{}}}"#,
            self.streams
        )
    }
}
