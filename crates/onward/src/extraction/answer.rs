//! Finds the JSON in a model's answer, even inside a code fence, after `<think>` output or between
//! explanations.

use serde_json::{Deserializer, Value};

/// Returns the value, or the parse error of the whole answer.
pub(super) fn json(answer: &str) -> Result<Value, String> {
    let answer = without_thinking(answer).trim();
    let whole = match serde_json::from_str(answer) {
        Ok(value) => return Ok(value),
        Err(why) => why,
    };
    if let Some(value) = parse_fenced(answer) {
        return Ok(value);
    }
    // The first complete object or array; the text around it is explanation.
    let starts = answer
        .char_indices()
        .filter(|(_, char)| matches!(char, '{' | '['));
    for (start, _) in starts.take(100) {
        let rest = answer.get(start..).unwrap_or_default();
        let mut values = Deserializer::from_str(rest).into_iter::<Value>();
        if let Some(Ok(value)) = values.next() {
            return Ok(value);
        }
    }
    Err(whole.to_string())
}

fn without_thinking(answer: &str) -> &str {
    let trimmed = answer.trim_start();
    let thought = trimmed.strip_prefix("<think>");
    let rest = thought.and_then(|thought| thought.split_once("</think>"));
    rest.map_or(answer, |(_, rest)| rest)
}

/// The content of a code fence.
fn parse_fenced(answer: &str) -> Option<Value> {
    let (_, rest) = answer.split_once("```")?;
    let (_, rest) = rest.split_once('\n')?;
    let (inside, _) = rest.rsplit_once("```")?;
    serde_json::from_str(inside.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn finds_the_json_in_an_answer() {
        let expected = json!({ "name": "Io", "of": ["Jupiter"] });
        for answer in [
            r#"{"name": "Io", "of": ["Jupiter"]}"#,
            " \n{\"name\": \"Io\", \"of\": [\"Jupiter\"]}\n",
            "```json\n{\"name\": \"Io\", \"of\": [\"Jupiter\"]}\n```",
            "Here it is:\n```\n{\"name\": \"Io\", \"of\": [\"Jupiter\"]}\n```\nAnything else?",
            r#"Sure! {"name": "Io", "of": ["Jupiter"]} That is all {there is}."#,
            "<think>{\"name\": \"no\"}</think>{\"name\": \"Io\", \"of\": [\"Jupiter\"]}",
        ] {
            assert_eq!(json(answer), Ok(expected.clone()), "{answer}");
        }
        assert_eq!(json("null"), Ok(Value::Null));
        assert_eq!(json("[1]"), Ok(json!([1])));
    }

    #[test]
    fn rejects_an_answer_without_json() {
        for answer in [
            "",
            "I cannot do that.",
            "{\"name\": \"I",
            "``` ```",
            "{ { {",
        ] {
            assert!(json(answer).is_err(), "{answer}");
        }
        assert!(json(&"[".repeat(100_000)).is_err());
    }
}
