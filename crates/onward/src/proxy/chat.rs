//! OpenAI's Chat Completions, and everything that speaks like it: `/v1/chat/completions`.
//!
//! Each result is a row, so what is added is a row of the user after them. Servers of open models may
//! take no notice of `tool_choice`, and their templates may want user and model to take turns: where the
//! tools go, what stands in a row of the same speaker becomes one.

use onward_core::transcript::json;
use serde_json::{Map, Value, json};

use super::dialect::{Answer, Dialect, Piece, RESULT, called, sse};
use super::request::{
    Answered, Asked, Edit, Request, Row, append, arguments, person, set, text, words,
};

pub(super) struct Chat;

impl Dialect for Chat {
    fn list(&self) -> &'static str {
        "messages"
    }

    fn system(&self) -> Option<&'static str> {
        None
    }

    fn row(&self, row: &Value) -> Row {
        match row["role"].as_str().unwrap_or_default() {
            "user" => person(&words(&row["content"])),
            "assistant" => Row::Model(calls(row)),
            "tool" => Row::Results(vec![answered(row, "tool_call_id")]),
            // The calls that came before tools: their results name the function, not the call.
            "function" => Row::Results(vec![answered(row, "name")]),
            _ => Row::Aside,
        }
    }

    fn say(&self, request: &Request<'_>, said: &str) -> Vec<Edit> {
        let row = format!(r#"{{"role":"user","content":{}}}"#, json::quoted(said));
        vec![append(request.text, &request.list(), &row)]
    }

    fn forbid(&self, request: &Request<'_>) -> Vec<Edit> {
        let keys = [("tools", "tool_choice"), ("functions", "function_call")];
        let given = keys
            .iter()
            .filter(|(given, _)| request.fields.get(given).is_some());
        given
            .map(|(_, key)| set(request, key, r#""none""#))
            .collect()
    }

    fn without_tools(&self, mut request: Value, said: &str) -> Value {
        if let Some(fields) = request.as_object_mut() {
            for key in [
                "tools",
                "tool_choice",
                "parallel_tool_calls",
                "functions",
                "function_call",
            ] {
                fields.remove(key);
            }
        }
        if let Some(rows) = request["messages"].as_array_mut() {
            let told = std::mem::take(rows).into_iter().map(told);
            let last = json!({ "role": "user", "content": said });
            for row in told.chain([last]) {
                merge(rows, row);
            }
        }
        request
    }

    fn event(&self, answer: &mut Answer, event: &Value) -> Piece {
        if !event["choices"].is_array() {
            return Piece::Other;
        }
        if !answer.started {
            answer.started = true;
            answer.named(event);
            answer.created = event["created"].clone();
        }
        let choice = &event["choices"][0];
        let delta = &choice["delta"];
        let mut begun = false;
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            begun |= take(answer, call);
        }
        if let Some(name) = delta["function_call"]["name"].as_str() {
            answer.calls.push(Asked {
                id: name.to_owned(),
                tool: name.to_owned(),
                input: json!(""),
            });
            begun = true;
        }
        let reason = choice["finish_reason"].as_str();
        answer.finished |= reason.is_some();
        // Some servers say that there are calls and print them as words.
        let claims = matches!(reason, Some("tool_calls" | "function_call"));
        if begun || (claims && answer.calls.is_empty()) {
            return Piece::Call;
        }
        match delta["content"].as_str() {
            Some(words) if !words.is_empty() => Piece::Text(words.to_owned()),
            Some(_) | None => Piece::Other,
        }
    }

    fn whole(&self, answer: &mut Answer, body: &Value) {
        let choice = &body["choices"][0];
        if !choice["message"].is_object() {
            return;
        }
        answer.started = true;
        answer.finished = true;
        answer.named(body);
        answer.created = body["created"].clone();
        answer.calls = calls(&choice["message"]);
        answer.text = words(&choice["message"]["content"]);
        let reason = choice["finish_reason"].as_str();
        if answer.calls.is_empty() && matches!(reason, Some("tool_calls" | "function_call")) {
            answer.finished = false;
        }
    }

    fn sentence(&self, mut body: Value, said: &str) -> Value {
        if !body.is_object() {
            body = Value::Object(Map::new());
        }
        body["object"] = json!("chat.completion");
        body["choices"] = json!([{
            "index": 0, "finish_reason": "stop", "logprobs": null,
            "message": { "role": "assistant", "content": said },
        }]);
        body
    }

    fn begin(&self, answer: &mut Answer) -> String {
        match std::mem::replace(&mut answer.started, true) {
            true => String::new(),
            false => chunk(answer, &json!({ "role": "assistant", "content": "" }), None),
        }
    }

    fn piece(&self, answer: &mut Answer, said: &str) -> String {
        chunk(answer, &json!({ "content": said }), None)
    }

    fn end(&self, answer: &mut Answer, _: &str) -> String {
        let last = chunk(answer, &json!({}), Some("stop"));
        format!("{last}data: [DONE]\n\n")
    }

    fn error(&self, message: &str) -> Value {
        json!({ "error": {
            "message": message, "type": "server_error", "param": null, "code": null,
        } })
    }
}

fn chunk(answer: &Answer, delta: &Value, reason: Option<&str>) -> String {
    let chunk = json!({
        "id": answer.id, "object": "chat.completion.chunk", "created": answer.created,
        "model": answer.model,
        "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }],
    });
    sse(None, &chunk)
}

/// Takes in a piece of a call, and says whether it is the beginning of one.
fn take(answer: &mut Answer, piece: &Value) -> bool {
    let function = match piece["function"].is_object() {
        true => &piece["function"],
        false => &piece["custom"],
    };
    let more = function["arguments"]
        .as_str()
        .or_else(|| function["input"].as_str())
        .unwrap_or_default();
    let index = piece["index"].as_u64().unwrap_or(0);
    let known = usize::try_from(index).ok();
    let known = known.and_then(|index| answer.calls.get_mut(index));
    if let Some(call) = known {
        if let Value::String(input) = &mut call.input {
            input.push_str(more);
        }
        return false;
    }
    answer.calls.push(Asked {
        id: text(piece, "id"),
        tool: text(function, "name"),
        input: json!(more),
    });
    true
}

fn calls(row: &Value) -> Vec<Asked> {
    let list = row["tool_calls"].as_array().into_iter().flatten();
    let calls = list.map(|call| {
        let function = &call["function"];
        // A tool of the kind `custom` is asked in plain text.
        let (function, input) = match function.is_object() {
            true => (function, arguments(&function["arguments"])),
            false => (&call["custom"], call["custom"]["input"].clone()),
        };
        Asked {
            id: text(call, "id"),
            tool: text(function, "name"),
            input,
        }
    });
    let old = &row["function_call"];
    let old = old["name"].as_str().map(|name| Asked {
        id: name.to_owned(),
        tool: name.to_owned(),
        input: arguments(&old["arguments"]),
    });
    calls.chain(old).collect()
}

fn answered(row: &Value, key: &str) -> Answered {
    let output = words(&row["content"]);
    Answered {
        id: text(row, key),
        // Nothing else marks a failure.
        ok: output.starts_with("Error").then_some(false),
        output,
    }
}

/// A row in words, where it holds calls or a result.
fn told(mut row: Value) -> Value {
    let role = text(&row, "role");
    if role == "tool" || role == "function" {
        let result = format!("{RESULT}\n{}", words(&row["content"]));
        return json!({ "role": "user", "content": result });
    }
    let calls = calls(&row);
    if calls.is_empty() {
        return row;
    }
    let mut said = words(&row["content"]);
    for call in &calls {
        if !said.is_empty() {
            said.push('\n');
        }
        said.push_str(&called(&call.tool, &call.input));
    }
    if let Some(fields) = row.as_object_mut() {
        fields.remove("tool_calls");
        fields.remove("function_call");
    }
    row["content"] = json!(said);
    row
}

/// Adds a row, to the one before where a user's words follow a user's.
fn merge(rows: &mut Vec<Value>, row: Value) {
    if let Some(last) = rows.last_mut()
        && last["role"] == "user"
        && row["role"] == "user"
        && let (Some(before), Some(after)) = (last["content"].as_str(), row["content"].as_str())
    {
        let both = format!("{before}\n\n{after}");
        last["content"] = json!(both);
        return;
    }
    rows.push(row);
}
