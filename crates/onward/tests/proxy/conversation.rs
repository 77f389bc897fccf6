//! Requests and replies of a conversation, in the format of each API.

use onward_testbed::mock_server::{MockServer, Reply};
use onward_testbed::{Response, Server};
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    Anthropic,
    Chat,
    Responses,
}

pub(crate) const ALL_APIS: [Api; 3] = [Api::Anthropic, Api::Chat, Api::Responses];

/// A conversation of an agent with a model.
#[derive(Debug, Clone)]
pub(crate) struct Conversation {
    pub(crate) api: Api,
    pub(crate) streaming: bool,
    pub(crate) session: String,
    pub(crate) rows: Vec<Value>,
    step_count: usize,
}

impl Conversation {
    pub(crate) fn new(api: Api, streaming: bool, session: &str) -> Self {
        let mut conversation = Self {
            api,
            streaming,
            session: session.to_owned(),
            rows: Vec::new(),
            step_count: 0,
        };
        conversation.add_user_message("When is high tide?");
        conversation
    }

    /// Adds a user message.
    pub(crate) fn add_user_message(&mut self, text: &str) {
        self.rows.push(match self.api {
            Api::Anthropic | Api::Chat => json!({ "role": "user", "content": text }),
            Api::Responses => json!({
                "type": "message", "role": "user",
                "content": [{ "type": "input_text", "text": text }],
            }),
        });
    }

    /// Adds a text answer of the model.
    pub(crate) fn add_assistant_message(&mut self, text: &str) {
        self.rows.push(match self.api {
            Api::Anthropic | Api::Chat => json!({ "role": "assistant", "content": text }),
            Api::Responses => json!({
                "type": "message", "role": "assistant",
                "content": [{ "type": "output_text", "text": text }],
            }),
        });
    }

    /// Adds a tool call and its result.
    pub(crate) fn add_step(&mut self, command: &str, output: &str) {
        self.step_count += 1;
        let id = format!("call_{}", self.step_count);
        let (call, result) = self.call_and_result(&id, command, output);
        self.rows.push(call);
        self.rows.push(result);
    }

    /// The rows of a tool call and its result.
    pub(crate) fn call_and_result(&self, id: &str, command: &str, output: &str) -> (Value, Value) {
        let arguments = json!({ "command": command }).to_string();
        match self.api {
            Api::Anthropic => (
                json!({ "role": "assistant", "content": [{
                    "type": "tool_use", "id": id, "name": "Bash", "input": { "command": command },
                }] }),
                json!({ "role": "user", "content": [{
                    "type": "tool_result", "tool_use_id": id, "content": output,
                }] }),
            ),
            Api::Chat => (
                json!({ "role": "assistant", "content": null, "tool_calls": [{
                    "id": id, "type": "function",
                    "function": { "name": "Bash", "arguments": arguments },
                }] }),
                json!({ "role": "tool", "tool_call_id": id, "content": output }),
            ),
            Api::Responses => (
                json!({
                    "type": "function_call", "call_id": id, "name": "Bash", "arguments": arguments,
                }),
                json!({ "type": "function_call_output", "call_id": id, "output": output }),
            ),
        }
    }

    pub(crate) fn path(&self) -> &'static str {
        match self.api {
            Api::Anthropic => "/v1/messages?beta=true",
            Api::Chat => "/v1/chat/completions",
            Api::Responses => "/v1/responses",
        }
    }

    pub(crate) fn request(&self) -> Value {
        let mut request = json!({ "model": "m", "stream": self.streaming });
        let tool = json!({ "name": "Bash" });
        match self.api {
            Api::Anthropic => {
                request["max_tokens"] = json!(100);
                request["system"] = json!([{ "type": "text", "text": "You are an agent." }]);
                request["messages"] = json!(self.rows);
                request["tools"] = json!([tool]);
            }
            Api::Chat => {
                let system = json!({ "role": "system", "content": "You are an agent." });
                let rows: Vec<&Value> = [&system].into_iter().chain(&self.rows).collect();
                request["messages"] = json!(rows);
                request["tools"] = json!([{ "type": "function", "function": tool }]);
                request["tool_choice"] = json!("auto");
            }
            Api::Responses => {
                request["instructions"] = json!("You are an agent.");
                request["input"] = json!(self.rows);
                request["tools"] = json!([{ "type": "function", "name": "Bash" }]);
                request["tool_choice"] = json!("auto");
            }
        }
        request
    }

    /// Sends the conversation so far.
    pub(crate) async fn send(&self, proxy: &Server) -> Response {
        let headers = [("x-session-id", self.session.as_str())];
        let body = self.request().to_string();
        proxy.send_with(self.path(), &headers, body).await
    }

    /// Sends the conversation, receives a tool call, and adds the step.
    pub(crate) async fn run_step(
        &mut self,
        proxy: &Server,
        upstream: &MockServer,
        command: &str,
        output: &str,
    ) {
        upstream.enqueue(self.call_reply());
        let response = self.send(proxy).await;
        assert!(response.status.is_success(), "{response:?}");
        self.add_step(command, output);
    }

    /// Runs steps without progress.
    pub(crate) async fn run_idle_steps(
        &mut self,
        proxy: &Server,
        upstream: &MockServer,
        steps: usize,
    ) {
        for _ in 0..steps {
            self.run_step(proxy, upstream, "true", "").await;
        }
    }

    fn encode(&self, body: &Value, events: &[(&str, Value)]) -> Reply {
        if !self.streaming {
            return Reply::new("application/json", body.to_string());
        }
        let mut text = String::new();
        for (name, data) in events {
            match self.api {
                Api::Chat => text.push_str(&format!("data: {data}\n\n")),
                Api::Anthropic | Api::Responses => {
                    text.push_str(&format!("event: {name}\ndata: {data}\n\n"));
                }
            }
        }
        if self.api == Api::Chat {
            text.push_str("data: [DONE]\n\n");
        }
        Reply::new("text/event-stream; charset=utf-8", text)
    }

    /// A reply with a tool call.
    pub(crate) fn call_reply(&self) -> Reply {
        self.reply(None, true)
    }

    /// A reply with a text answer.
    pub(crate) fn text_reply(&self, text: &str) -> Reply {
        self.reply(Some(text), false)
    }

    /// A reply with a text, a tool call, or both.
    pub(crate) fn reply(&self, text: Option<&str>, calls: bool) -> Reply {
        match self.api {
            Api::Anthropic => self.anthropic(text, calls),
            Api::Chat => self.chat(text, calls),
            Api::Responses => self.responses(text, calls),
        }
    }

    fn anthropic(&self, text: Option<&str>, calls: bool) -> Reply {
        let mut blocks = Vec::new();
        let mut events = vec![(
            "message_start",
            json!({ "type": "message_start", "message": {
                "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
                "stop_reason": null, "stop_sequence": null,
                "usage": { "input_tokens": 1, "output_tokens": 1 },
            } }),
        )];
        let mut block = |start: Value, content: Value, delta: Value| {
            let index = blocks.len();
            blocks.push(content);
            let named = |name: &str, mut data: Value| {
                data["type"] = json!(name);
                data["index"] = json!(index);
                data
            };
            let start = named("content_block_start", json!({ "content_block": start }));
            let delta = named("content_block_delta", json!({ "delta": delta }));
            events.push(("content_block_start", start));
            events.push(("content_block_delta", delta));
            events.push(("content_block_stop", named("content_block_stop", json!({}))));
        };
        if let Some(text) = text {
            block(
                json!({ "type": "text", "text": "" }),
                json!({ "type": "text", "text": text }),
                json!({ "type": "text_delta", "text": text }),
            );
        }
        if calls {
            let call = json!({ "type": "tool_use", "id": "call_x", "name": "Bash", "input": {} });
            let delta = json!({ "type": "input_json_delta", "partial_json": "{}" });
            block(call.clone(), call, delta);
        }
        let reason = if calls { "tool_use" } else { "end_turn" };
        let delta = json!({
            "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null },
            "usage": { "output_tokens": 5 },
        });
        events.push(("message_delta", delta));
        events.push(("message_stop", json!({ "type": "message_stop" })));
        let body = json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
            "content": blocks, "stop_reason": reason, "stop_sequence": null,
            "usage": { "input_tokens": 1, "output_tokens": 5 },
        });
        self.encode(&body, &events)
    }

    fn chat(&self, text: Option<&str>, calls: bool) -> Reply {
        let call = json!({
            "id": "call_x", "type": "function",
            "function": { "name": "Bash", "arguments": "{}" },
        });
        let chunk = |delta: Value, reason: Option<&str>| {
            let chunk = json!({
                "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 7, "model": "m",
                "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }],
            });
            ("", chunk)
        };
        let mut message = json!({ "role": "assistant", "content": text });
        let mut events = vec![chunk(json!({ "role": "assistant", "content": "" }), None)];
        if let Some(text) = text {
            events.push(chunk(json!({ "content": text }), None));
        }
        if calls {
            message["tool_calls"] = json!([call]);
            let mut started = call;
            started["index"] = json!(0);
            events.push(chunk(json!({ "tool_calls": [started] }), None));
        }
        let reason = if calls { "tool_calls" } else { "stop" };
        events.push(chunk(json!({}), Some(reason)));
        let body = json!({
            "id": "chatcmpl-1", "object": "chat.completion", "created": 7, "model": "m",
            "choices": [{ "index": 0, "message": message, "finish_reason": reason }],
        });
        self.encode(&body, &events)
    }

    fn responses(&self, text: Option<&str>, calls: bool) -> Reply {
        let mut output = Vec::new();
        if let Some(text) = text {
            output.push(json!({
                "id": "msg_1", "type": "message", "status": "completed", "role": "assistant",
                "content": [{ "type": "output_text", "text": text, "annotations": [] }],
            }));
        }
        if calls {
            output.push(json!({
                "id": "fc_1", "type": "function_call", "status": "completed", "call_id": "call_x",
                "name": "Bash", "arguments": "{\"command\":\"true\"}",
            }));
        }
        let mut body = json!({
            "id": "resp_1", "object": "response", "created_at": 7, "status": "in_progress",
            "model": "m", "output": [],
        });
        let mut events = Vec::new();
        let mut number = 0;
        let mut event = |name: &'static str, mut data: Value| {
            data["type"] = json!(name);
            data["sequence_number"] = json!(number);
            number += 1;
            events.push((name, data));
        };
        event("response.created", json!({ "response": body }));
        for (index, item) in output.iter().enumerate() {
            event(
                "response.output_item.added",
                json!({ "output_index": index, "item": item }),
            );
            if let Some(text) = item["content"][0]["text"].as_str() {
                event(
                    "response.output_text.delta",
                    json!({ "output_index": index, "item_id": "msg_1", "delta": text }),
                );
            }
            event(
                "response.output_item.done",
                json!({ "output_index": index, "item": item }),
            );
        }
        body["status"] = json!("completed");
        body["output"] = json!(output);
        event("response.completed", json!({ "response": body }));
        self.encode(&body, &events)
    }

    /// Whether a request forbids tool calls and still defines the tools.
    pub(crate) fn forbids_tools(&self, request: &Value) -> bool {
        let none = match self.api {
            Api::Anthropic => json!({ "type": "none" }),
            Api::Chat | Api::Responses => json!("none"),
        };
        request["tool_choice"] == none && request["tools"] == self.request()["tools"]
    }

    /// The user text after the results of the last calls.
    pub(crate) fn injected_text(&self, request: &Value) -> String {
        let text = match self.api {
            Api::Anthropic => {
                let last = request["messages"].as_array().unwrap().last().unwrap();
                assert_eq!(last["role"], "user");
                let blocks = last["content"].as_array().unwrap();
                let results = blocks.iter().take_while(|b| b["type"] == "tool_result");
                assert_eq!(results.count(), blocks.len() - 1, "{last}");
                blocks.last().unwrap()["text"].clone()
            }
            Api::Chat => {
                let rows = request["messages"].as_array().unwrap();
                assert_eq!(rows[0]["role"], "system");
                assert_eq!(rows[rows.len() - 2]["role"], "tool");
                assert_eq!(rows[rows.len() - 1]["role"], "user");
                rows[rows.len() - 1]["content"].clone()
            }
            Api::Responses => {
                let items = request["input"].as_array().unwrap();
                assert_eq!(items[items.len() - 2]["type"], "function_call_output");
                assert_eq!(items[items.len() - 1]["role"], "user");
                items[items.len() - 1]["content"][0]["text"].clone()
            }
        };
        text.as_str().expect("text is a string").to_owned()
    }

    /// The text of a response, which must be complete, valid and text only.
    #[track_caller]
    pub(crate) fn response_text(&self, response: &Response) -> String {
        assert!(response.status.is_success(), "{response:?}");
        match (self.streaming, self.api) {
            (false, _) => self.body_text(&response.json()),
            (true, Api::Anthropic) => self.anthropic_text(&events(response)),
            (true, Api::Chat) => self.chat_text(&events(response)),
            (true, Api::Responses) => self.responses_text(&events(response)),
        }
    }

    #[track_caller]
    fn body_text(&self, response: &Value) -> String {
        let texts = |blocks: &Value, kind: &str| {
            let texts = blocks
                .as_array()
                .expect("blocks is a list")
                .iter()
                .map(|block| {
                    assert_eq!(block["type"], kind, "{response}");
                    block["text"].as_str().expect("text is a string")
                });
            texts.collect::<String>()
        };
        match self.api {
            Api::Anthropic => {
                assert_eq!(response["stop_reason"], "end_turn", "{response}");
                assert_eq!(
                    (&response["type"], &response["role"]),
                    (&json!("message"), &json!("assistant"))
                );
                texts(&response["content"], "text")
            }
            Api::Chat => {
                let choice = &response["choices"][0];
                assert_eq!(choice["finish_reason"], "stop", "{response}");
                assert!(choice["message"].get("tool_calls").is_none(), "{response}");
                choice["message"]["content"]
                    .as_str()
                    .expect("text is a string")
                    .to_owned()
            }
            Api::Responses => {
                assert_eq!(response["status"], "completed", "{response}");
                let items = response["output"]
                    .as_array()
                    .expect("items is a list")
                    .iter();
                let text = items.map(|item| {
                    assert_eq!(item["type"], "message", "{response}");
                    texts(&item["content"], "output_text")
                });
                text.collect()
            }
        }
    }

    #[track_caller]
    fn anthropic_text(&self, events: &[Value]) -> String {
        let mut text = String::new();
        let mut open = None;
        let mut next = 0;
        for event in events {
            match event["type"].as_str().expect("type is a string") {
                "message_start" => assert_eq!(event, &events[0]),
                "content_block_start" => {
                    assert_eq!((open, &event["index"]), (None, &json!(next)), "{event}");
                    assert_eq!(event["content_block"]["type"], "text", "{event}");
                    open = Some(next);
                }
                "content_block_delta" => {
                    assert_eq!(event["index"], json!(open), "{event}");
                    text.push_str(event["delta"]["text"].as_str().expect("text is a string"));
                }
                "content_block_stop" => {
                    assert_eq!(event["index"], json!(open.take()), "{event}");
                    next += 1;
                }
                "message_delta" => assert_eq!(event["delta"]["stop_reason"], "end_turn"),
                "message_stop" => assert_eq!(event, &events[events.len() - 1]),
                other => panic!("{other}"),
            }
        }
        assert_eq!(events[events.len() - 1]["type"], "message_stop");
        assert_eq!(events[events.len() - 2]["type"], "message_delta");
        text
    }

    #[track_caller]
    fn chat_text(&self, events: &[Value]) -> String {
        let mut text = String::new();
        for (index, event) in events.iter().enumerate() {
            let choice = &event["choices"][0];
            assert!(choice["delta"].get("tool_calls").is_none(), "{event}");
            assert_eq!(event["id"], events[0]["id"]);
            text.push_str(choice["delta"]["content"].as_str().unwrap_or_default());
            let last = index + 1 == events.len();
            assert_eq!(choice["finish_reason"] == "stop", last, "{event}");
        }
        text
    }

    #[track_caller]
    fn responses_text(&self, events: &[Value]) -> String {
        let mut text = String::new();
        for (number, event) in events.iter().enumerate() {
            assert_eq!(event["sequence_number"], json!(number), "{event}");
            if event["type"] == "response.output_text.delta" {
                text.push_str(event["delta"].as_str().expect("text is a string"));
            }
        }
        let last = &events[events.len() - 1];
        assert_eq!(last["type"], "response.completed");
        assert_eq!(last["response"]["id"], events[0]["response"]["id"]);
        assert_eq!(self.body_text(&last["response"]), text);
        text
    }
}

/// The data of the events of a stream.
fn events(response: &Response) -> Vec<Value> {
    let text = std::str::from_utf8(&response.body).expect("UTF-8 body");
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let done = data.clone().any(|data| data == "[DONE]");
    let data: Vec<&str> = data.filter(|data| *data != "[DONE]").collect();
    assert!(!done || text.ends_with("data: [DONE]\n\n"), "{text}");
    data.iter()
        .map(|data| serde_json::from_str(data).expect("JSON event"))
        .collect()
}
