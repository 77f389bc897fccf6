//! What each API accepts, written down from their documentation and without a look at the code that is
//! tried here: on parsed values, row by row.

use serde_json::Value;

/// What is wrong with an Anthropic conversation.
pub(crate) fn anthropic(rows: &[Value]) -> Result<(), String> {
    served(rows)?;
    let mut owed: Vec<&str> = Vec::new();
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
            return Err(format!("row {index}: a result behind something else"));
        }
        let given: Vec<&str> = blocks[..results]
            .iter()
            .filter_map(|b| b["tool_use_id"].as_str())
            .collect();
        if row["role"] == "assistant" && !given.is_empty() {
            return Err(format!("row {index}: the model gives a result"));
        }
        if given != owed {
            return Err(format!("row {index}: owed {owed:?}, given {given:?}"));
        }
        owed = ids(row, "assistant");
        let same = index > 0 && rows[index - 1]["role"] == row["role"];
        if same
            && ["user", "assistant"]
                .iter()
                .any(|role| row["role"] == *role)
            && is_plain(row)
        {
            return Err(format!("row {index}: the role of the row before"));
        }
    }
    if owed.is_empty() {
        Ok(())
    } else {
        Err(format!("owed in the end: {owed:?}"))
    }
}

/// What the server ran must have its result once somebody has said more than results.
fn served(rows: &[Value]) -> Result<(), String> {
    let blocks = |role: &'static str| {
        let rows = rows.iter().enumerate();
        rows.filter(move |(_, row)| row["role"] == role)
            .flat_map(|(index, row)| {
                let blocks = row["content"].as_array().into_iter().flatten();
                blocks.map(move |block| (index, block))
            })
    };
    let says = |block: &Value| {
        let blank = block["text"]
            .as_str()
            .is_some_and(|text| text.trim().is_empty());
        block["type"] != "tool_result" && !blank
    };
    let spoken = blocks("user")
        .filter(|(_, block)| says(block))
        .map(|(index, _)| index);
    let whole = rows.iter().enumerate().filter(|(_, row)| {
        row["role"] == "user"
            && row["content"]
                .as_str()
                .is_some_and(|text| !text.trim().is_empty())
    });
    let last = spoken.chain(whole.map(|(index, _)| index)).max();
    for (index, call) in blocks("assistant") {
        let waits = call["type"] == "server_tool_use" && last.is_some_and(|last| last > index);
        let mut results = blocks("assistant").map(|(_, block)| block);
        let answered = results.any(|block| {
            block["type"] == "web_search_tool_result" && block["tool_use_id"] == call["id"]
        });
        if waits && !answered {
            return Err(format!("row {index}: the server owes {}", call["id"]));
        }
    }
    Ok(())
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

/// What is wrong with a conversation of Chat Completions.
pub(crate) fn chat(rows: &[Value]) -> Result<(), String> {
    let mut owed: Vec<&str> = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        if row["role"] == "tool" {
            if owed.is_empty() || row["tool_call_id"] != owed[0] {
                return Err(format!(
                    "row {index}: owed {owed:?}, given {}",
                    row["tool_call_id"]
                ));
            }
            owed.remove(0);
            continue;
        }
        if !owed.is_empty() {
            return Err(format!("row {index}: still owed {owed:?}"));
        }
        if row["role"] == "assistant" {
            let calls = row["tool_calls"].as_array().into_iter().flatten();
            owed = calls.filter_map(|call| call["id"].as_str()).collect();
        }
    }
    if owed.is_empty() {
        Ok(())
    } else {
        Err(format!("owed in the end: {owed:?}"))
    }
}

/// What is wrong with the items of Responses.
pub(crate) fn responses(items: &[Value]) -> Result<(), String> {
    let mut owed: Vec<&str> = Vec::new();
    let mut paying = false;
    for (index, item) in items.iter().enumerate() {
        match item["type"].as_str() {
            Some("function_call") => {
                if paying && !owed.is_empty() {
                    return Err(format!("item {index}: still owed {owed:?}"));
                }
                paying = false;
                owed.extend(item["call_id"].as_str());
            }
            Some("function_call_output") => {
                paying = true;
                if owed.is_empty() || item["call_id"] != owed[0] {
                    return Err(format!(
                        "item {index}: owed {owed:?}, given {}",
                        item["call_id"]
                    ));
                }
                owed.remove(0);
            }
            Some("reasoning") if !paying => {}
            _ if item["role"] == "assistant" && !paying => {}
            _ if !owed.is_empty() => return Err(format!("item {index}: still owed {owed:?}")),
            _ => {}
        }
    }
    if owed.is_empty() {
        Ok(())
    } else {
        Err(format!("owed in the end: {owed:?}"))
    }
}
