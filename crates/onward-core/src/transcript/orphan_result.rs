//! Converts the result of an unknown call to text blocks, so that a model still reads its content.

use super::json;

/// The heading of a result without a call when it is converted to text.
pub(super) fn orphan_heading(id: &str) -> String {
    format!("[Result of `{id}`, a tool call that is not part of this conversation]")
}

/// A result's content as blocks, with a heading. Blocks that are objects are kept; everything else
/// becomes text.
pub(super) fn with_heading(heading: &str, content: &str, kind: &str) -> Vec<String> {
    let block = |text: &str| format!(r#"{{"type":"{kind}","text":{}}}"#, json::quoted(text));
    if content == "null" {
        return vec![block(heading)];
    }
    if let Some(text) = json::string(content) {
        return vec![block(format!("{heading}\n{text}").trim_end())];
    }
    let Some(spans) = json::elements(content) else {
        return vec![block(&format!("{heading}\n{content}"))];
    };
    let mut blocks = vec![block(heading)];
    for element in spans.into_iter().filter_map(|span| content.get(span)) {
        blocks.push(match json::Object::parse(element) {
            Some(_) => element.to_owned(),
            None => block(&json::string(element).unwrap_or(element.into())),
        });
    }
    blocks
}
