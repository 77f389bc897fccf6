//! The three APIs, spoken as agents and servers speak them.

use serde_json::{Value, json};

use crate::house::{Answer, Proxy};
use crate::upstream::{Reply, Upstream};

/// How every reminder begins.
pub(crate) const IDLE: &str = "nothing new was learned";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    Anthropic,
    Chat,
    Responses,
}

pub(crate) const ALL: [Api; 3] = [Api::Anthropic, Api::Chat, Api::Responses];

/// A conversation of an agent.
#[derive(Debug, Clone)]
pub(crate) struct Talk {
    pub(crate) api: Api,
    pub(crate) streams: bool,
    pub(crate) session: String,
    pub(crate) rows: Vec<Value>,
    steps: usize,
}

impl Talk {
    pub(crate) fn new(api: Api, streams: bool, session: &str) -> Self {
        let mut talk = Self {
            api,
            streams,
            session: session.to_owned(),
            rows: Vec::new(),
            steps: 0,
        };
        talk.asks("When is high tide?");
        talk
    }

    /// A person writes.
    pub(crate) fn asks(&mut self, words: &str) {
        self.rows.push(match self.api {
            Api::Anthropic | Api::Chat => json!({ "role": "user", "content": words }),
            Api::Responses => json!({
                "type": "message", "role": "user",
                "content": [{ "type": "input_text", "text": words }],
            }),
        });
    }

    /// The model answers in words.
    pub(crate) fn says(&mut self, words: &str) {
        self.rows.push(match self.api {
            Api::Anthropic | Api::Chat => json!({ "role": "assistant", "content": words }),
            Api::Responses => json!({
                "type": "message", "role": "assistant",
                "content": [{ "type": "output_text", "text": words }],
            }),
        });
    }

    /// The model calls a tool, which answers this.
    pub(crate) fn steps(&mut self, command: &str, output: &str) {
        self.steps += 1;
        let id = format!("call_{}", self.steps);
        let (call, result) = self.pair(&id, command, output);
        self.rows.push(call);
        self.rows.push(result);
    }

    pub(crate) fn pair(&self, id: &str, command: &str, output: &str) -> (Value, Value) {
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
        let mut request = json!({ "model": "m", "stream": self.streams });
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

    /// Sends what was said so far.
    pub(crate) async fn sends(&self, proxy: &Proxy) -> Answer {
        let headers = [("x-session-id", self.session.as_str())];
        let body = self.request().to_string();
        proxy.send_with(self.path(), &headers, body).await
    }

    /// Sends it, with a model that calls a tool once more, and makes the step that comes of it.
    pub(crate) async fn goes_on(
        &mut self,
        proxy: &Proxy,
        upstream: &Upstream,
        command: &str,
        output: &str,
    ) {
        upstream.will(self.calling());
        let answer = self.sends(proxy).await;
        assert!(answer.status.is_success(), "{answer:?}");
        self.steps(command, output);
    }

    /// So many steps of which nothing comes, each sent.
    pub(crate) async fn idles(&mut self, proxy: &Proxy, upstream: &Upstream, steps: usize) {
        for _ in 0..steps {
            self.goes_on(proxy, upstream, "true", "").await;
        }
    }

    fn reply(&self, whole: &Value, events: &[(&str, Value)]) -> Reply {
        if !self.streams {
            return Reply::of("application/json", whole.to_string());
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
        Reply::of("text/event-stream; charset=utf-8", text)
    }

    /// An answer that calls a tool.
    pub(crate) fn calling(&self) -> Reply {
        self.answering(None, true)
    }

    /// An answer in words.
    pub(crate) fn answers(&self, words: &str) -> Reply {
        self.answering(Some(words), false)
    }

    /// An answer with words, or a call, or both.
    pub(crate) fn answering(&self, words: Option<&str>, calls: bool) -> Reply {
        match self.api {
            Api::Anthropic => self.anthropic(words, calls),
            Api::Chat => self.chat(words, calls),
            Api::Responses => self.responses(words, calls),
        }
    }

    fn anthropic(&self, words: Option<&str>, calls: bool) -> Reply {
        let mut blocks = Vec::new();
        let mut events = vec![(
            "message_start",
            json!({ "type": "message_start", "message": {
                "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
                "stop_reason": null, "stop_sequence": null,
                "usage": { "input_tokens": 1, "output_tokens": 1 },
            } }),
        )];
        let mut block = |start: Value, whole: Value, delta: Value| {
            let index = blocks.len();
            blocks.push(whole);
            let named = |name: &str, mut more: Value| {
                more["type"] = json!(name);
                more["index"] = json!(index);
                more
            };
            let start = named("content_block_start", json!({ "content_block": start }));
            let delta = named("content_block_delta", json!({ "delta": delta }));
            events.push(("content_block_start", start));
            events.push(("content_block_delta", delta));
            events.push(("content_block_stop", named("content_block_stop", json!({}))));
        };
        if let Some(words) = words {
            block(
                json!({ "type": "text", "text": "" }),
                json!({ "type": "text", "text": words }),
                json!({ "type": "text_delta", "text": words }),
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
        let whole = json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
            "content": blocks, "stop_reason": reason, "stop_sequence": null,
            "usage": { "input_tokens": 1, "output_tokens": 5 },
        });
        self.reply(&whole, &events)
    }

    fn chat(&self, words: Option<&str>, calls: bool) -> Reply {
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
        let mut message = json!({ "role": "assistant", "content": words });
        let mut events = vec![chunk(json!({ "role": "assistant", "content": "" }), None)];
        if let Some(words) = words {
            events.push(chunk(json!({ "content": words }), None));
        }
        if calls {
            message["tool_calls"] = json!([call]);
            let mut begun = call;
            begun["index"] = json!(0);
            events.push(chunk(json!({ "tool_calls": [begun] }), None));
        }
        let reason = if calls { "tool_calls" } else { "stop" };
        events.push(chunk(json!({}), Some(reason)));
        let whole = json!({
            "id": "chatcmpl-1", "object": "chat.completion", "created": 7, "model": "m",
            "choices": [{ "index": 0, "message": message, "finish_reason": reason }],
        });
        self.reply(&whole, &events)
    }

    fn responses(&self, words: Option<&str>, calls: bool) -> Reply {
        let mut output = Vec::new();
        if let Some(words) = words {
            output.push(json!({
                "id": "msg_1", "type": "message", "status": "completed", "role": "assistant",
                "content": [{ "type": "output_text", "text": words, "annotations": [] }],
            }));
        }
        if calls {
            output.push(json!({
                "id": "fc_1", "type": "function_call", "status": "completed", "call_id": "call_x",
                "name": "Bash", "arguments": "{\"command\":\"true\"}",
            }));
        }
        let mut whole = json!({
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
        event("response.created", json!({ "response": whole }));
        for (index, item) in output.iter().enumerate() {
            event(
                "response.output_item.added",
                json!({ "output_index": index, "item": item }),
            );
            if let Some(words) = item["content"][0]["text"].as_str() {
                event(
                    "response.output_text.delta",
                    json!({ "output_index": index, "item_id": "msg_1", "delta": words }),
                );
            }
            event(
                "response.output_item.done",
                json!({ "output_index": index, "item": item }),
            );
        }
        whole["status"] = json!("completed");
        whole["output"] = json!(output);
        event("response.completed", json!({ "response": whole }));
        self.reply(&whole, &events)
    }

    /// Whether a request forbids every tool and still defines them.
    pub(crate) fn forbids(&self, request: &Value) -> bool {
        let none = match self.api {
            Api::Anthropic => json!({ "type": "none" }),
            Api::Chat | Api::Responses => json!("none"),
        };
        request["tool_choice"] == none && request["tools"] == self.request()["tools"]
    }

    /// What a request says after the results of the last calls, and to whom it seems to come from.
    pub(crate) fn said_last(&self, request: &Value) -> String {
        let said = match self.api {
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
        said.as_str().expect("words").to_owned()
    }

    /// The words of an answer that must be whole, well formed, and have nothing else.
    #[track_caller]
    pub(crate) fn words(&self, answer: &Answer) -> String {
        assert!(answer.status.is_success(), "{answer:?}");
        match (self.streams, self.api) {
            (false, _) => self.whole_words(&answer.json()),
            (true, Api::Anthropic) => self.anthropic_words(&events(answer)),
            (true, Api::Chat) => self.chat_words(&events(answer)),
            (true, Api::Responses) => self.responses_words(&events(answer)),
        }
    }

    #[track_caller]
    fn whole_words(&self, answer: &Value) -> String {
        let texts = |blocks: &Value, kind: &str| {
            let texts = blocks.as_array().expect("blocks").iter().map(|block| {
                assert_eq!(block["type"], kind, "{answer}");
                block["text"].as_str().expect("words")
            });
            texts.collect::<String>()
        };
        match self.api {
            Api::Anthropic => {
                assert_eq!(answer["stop_reason"], "end_turn", "{answer}");
                assert_eq!(
                    (&answer["type"], &answer["role"]),
                    (&json!("message"), &json!("assistant"))
                );
                texts(&answer["content"], "text")
            }
            Api::Chat => {
                let choice = &answer["choices"][0];
                assert_eq!(choice["finish_reason"], "stop", "{answer}");
                assert!(choice["message"].get("tool_calls").is_none(), "{answer}");
                choice["message"]["content"]
                    .as_str()
                    .expect("words")
                    .to_owned()
            }
            Api::Responses => {
                assert_eq!(answer["status"], "completed", "{answer}");
                let items = answer["output"].as_array().expect("items").iter();
                let words = items.map(|item| {
                    assert_eq!(item["type"], "message", "{answer}");
                    texts(&item["content"], "output_text")
                });
                words.collect()
            }
        }
    }

    #[track_caller]
    fn anthropic_words(&self, events: &[Value]) -> String {
        let mut words = String::new();
        let mut open = None;
        let mut next = 0;
        for event in events {
            match event["type"].as_str().expect("a type") {
                "message_start" => assert_eq!(event, &events[0]),
                "content_block_start" => {
                    assert_eq!((open, &event["index"]), (None, &json!(next)), "{event}");
                    assert_eq!(event["content_block"]["type"], "text", "{event}");
                    open = Some(next);
                }
                "content_block_delta" => {
                    assert_eq!(event["index"], json!(open), "{event}");
                    words.push_str(event["delta"]["text"].as_str().expect("words"));
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
        words
    }

    #[track_caller]
    fn chat_words(&self, events: &[Value]) -> String {
        let mut words = String::new();
        for (index, event) in events.iter().enumerate() {
            let choice = &event["choices"][0];
            assert!(choice["delta"].get("tool_calls").is_none(), "{event}");
            assert_eq!(event["id"], "chatcmpl-1");
            words.push_str(choice["delta"]["content"].as_str().unwrap_or_default());
            let last = index + 1 == events.len();
            assert_eq!(choice["finish_reason"] == "stop", last, "{event}");
        }
        words
    }

    #[track_caller]
    fn responses_words(&self, events: &[Value]) -> String {
        let mut words = String::new();
        for (number, event) in events.iter().enumerate() {
            assert_eq!(event["sequence_number"], json!(number), "{event}");
            if event["type"] == "response.output_text.delta" {
                words.push_str(event["delta"].as_str().expect("words"));
            }
        }
        let last = &events[events.len() - 1];
        assert_eq!(last["type"], "response.completed");
        assert_eq!(last["response"]["id"], "resp_1");
        assert_eq!(self.whole_words(&last["response"]), words);
        words
    }
}

/// The data of a stream's events.
fn events(answer: &Answer) -> Vec<Value> {
    let text = std::str::from_utf8(&answer.body).expect("text");
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let done = data.clone().any(|data| data == "[DONE]");
    let data: Vec<&str> = data.filter(|data| *data != "[DONE]").collect();
    assert!(!done || text.ends_with("data: [DONE]\n\n"), "{text}");
    data.iter()
        .map(|data| serde_json::from_str(data).expect("JSON"))
        .collect()
}
