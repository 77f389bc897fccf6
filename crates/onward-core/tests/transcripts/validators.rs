//! Validators for the three APIs, written from their documentation and independent of the code
//! under test. They work on parsed JSON.

use serde_json::Value;

/// Validates an Anthropic conversation.
pub(crate) fn anthropic(rows: &[Value]) -> Result<(), String> {
    check_server_calls(rows)?;
    let mut pending: Vec<&str> = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let blocks = row["content"].as_array().cloned().unwrap_or_default();
        let results = blocks
            .iter()
            .take_while(|block| block["type"] == "tool_result")
            .count();
        let all = blocks
            .iter()
            .filter(|block| block["type"] == "tool_result")
            .count();
        if results != all {
            return Err(format!("row {index}: a result after other content"));
        }
        let found: Vec<&str> = blocks[..results]
            .iter()
            .filter_map(|b| b["tool_use_id"].as_str())
            .collect();
        if row["role"] == "assistant" && !found.is_empty() {
            return Err(format!("row {index}: a result in a row of the model"));
        }
        if found != pending {
            return Err(format!(
                "row {index}: expected {pending:?}, found {found:?}"
            ));
        }
        pending = ids(row, "assistant");
        check_unique(index, &pending)?;
        let same = index > 0 && rows[index - 1]["role"] == row["role"];
        if same
            && ["user", "assistant"]
                .iter()
                .any(|role| row["role"] == *role)
            && is_plain(row)
        {
            return Err(format!("row {index}: same role as the previous row"));
        }
    }
    if pending.is_empty() {
        Ok(())
    } else {
        Err(format!("missing at the end: {pending:?}"))
    }
}

/// A server call must have its result once the user has sent more than results.
fn check_server_calls(rows: &[Value]) -> Result<(), String> {
    let blocks = |role: &'static str| {
        let rows = rows.iter().enumerate();
        rows.filter(move |(_, row)| row["role"] == role)
            .flat_map(|(index, row)| {
                let blocks = row["content"].as_array().into_iter().flatten();
                blocks.map(move |block| (index, block))
            })
    };
    let has_content = |block: &Value| {
        let blank = block["text"]
            .as_str()
            .is_some_and(|text| text.trim().is_empty());
        block["type"] != "tool_result" && !blank
    };
    let with_blocks = blocks("user")
        .filter(|(_, block)| has_content(block))
        .map(|(index, _)| index);
    let with_text = rows.iter().enumerate().filter(|(_, row)| {
        row["role"] == "user"
            && row["content"]
                .as_str()
                .is_some_and(|text| !text.trim().is_empty())
    });
    let last = with_blocks.chain(with_text.map(|(index, _)| index)).max();
    for (index, call) in blocks("assistant") {
        let needs_result =
            call["type"] == "server_tool_use" && last.is_some_and(|last| last > index);
        let mut results = blocks("assistant").map(|(_, block)| block);
        let has_result = results.any(|block| {
            block["type"] == "web_search_tool_result" && block["tool_use_id"] == call["id"]
        });
        if needs_result && !has_result {
            return Err(format!(
                "row {index}: no result for server call {}",
                call["id"]
            ));
        }
    }
    Ok(())
}

/// The ids of the calls in a row must differ.
fn check_unique(index: usize, ids: &[&str]) -> Result<(), String> {
    let mut sorted = ids.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    if sorted.len() == ids.len() {
        Ok(())
    } else {
        Err(format!("row {index}: duplicate ids in {ids:?}"))
    }
}

fn is_plain(row: &Value) -> bool {
    row.as_object()
        .is_some_and(|row| row.keys().all(|key| key == "role" || key == "content"))
}

fn ids<'a>(row: &'a Value, role: &str) -> Vec<&'a str> {
    let blocks = row["content"].as_array().into_iter().flatten();
    blocks
        .filter(|block| row["role"] == role && block["type"] == "tool_use")
        .filter_map(|block| block["id"].as_str())
        .collect()
}

/// Validates a Chat Completions conversation.
pub(crate) fn chat(rows: &[Value]) -> Result<(), String> {
    let mut pending: Vec<&str> = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        if row["role"] == "tool" {
            if pending.is_empty() || row["tool_call_id"] != pending[0] {
                return Err(format!(
                    "row {index}: expected {pending:?}, found {}",
                    row["tool_call_id"]
                ));
            }
            pending.remove(0);
            continue;
        }
        if !pending.is_empty() {
            return Err(format!("row {index}: missing {pending:?}"));
        }
        if row["role"] == "assistant" {
            let calls = row["tool_calls"].as_array().into_iter().flatten();
            pending = calls.filter_map(|call| call["id"].as_str()).collect();
            check_unique(index, &pending)?;
        }
    }
    if pending.is_empty() {
        Ok(())
    } else {
        Err(format!("missing at the end: {pending:?}"))
    }
}

/// Validates the items of a Responses conversation.
pub(crate) fn responses(items: &[Value]) -> Result<(), String> {
    let mut pending: Vec<&str> = Vec::new();
    let mut in_results = false;
    for (index, item) in items.iter().enumerate() {
        match item["type"].as_str() {
            Some("function_call") => {
                if in_results && !pending.is_empty() {
                    return Err(format!("item {index}: missing {pending:?}"));
                }
                in_results = false;
                pending.extend(item["call_id"].as_str());
                check_unique(index, &pending)?;
            }
            Some("function_call_output") => {
                in_results = true;
                if pending.is_empty() || item["call_id"] != pending[0] {
                    return Err(format!(
                        "item {index}: expected {pending:?}, found {}",
                        item["call_id"]
                    ));
                }
                pending.remove(0);
            }
            Some("reasoning") if !in_results => {}
            _ if item["role"] == "assistant" && !in_results => {}
            _ if !pending.is_empty() => return Err(format!("item {index}: missing {pending:?}")),
            _ => {}
        }
    }
    if pending.is_empty() {
        Ok(())
    } else {
        Err(format!("missing at the end: {pending:?}"))
    }
}
