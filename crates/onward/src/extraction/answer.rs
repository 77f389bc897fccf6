//! The JSON in a model's answer. It should be all of it; models that think aloud, or put it into a code
//! fence, or say what it is, are understood as well.

use serde_json::{Deserializer, Value};

/// The value, or why there is none.
pub(super) fn json(said: &str) -> Result<Value, String> {
    let said = without_thoughts(said).trim();
    let whole = match serde_json::from_str(said) {
        Ok(value) => return Ok(value),
        Err(why) => why,
    };
    if let Some(value) = fenced(said) {
        return Ok(value);
    }
    // The first object or list that is complete: text around it explains it.
    let starts = said
        .char_indices()
        .filter(|(_, char)| matches!(char, '{' | '['));
    for (start, _) in starts.take(100) {
        let rest = said.get(start..).unwrap_or_default();
        let mut values = Deserializer::from_str(rest).into_iter::<Value>();
        if let Some(Ok(value)) = values.next() {
            return Ok(value);
        }
    }
    Err(whole.to_string())
}

fn without_thoughts(said: &str) -> &str {
    let trimmed = said.trim_start();
    let thought = trimmed.strip_prefix("<think>");
    let behind = thought.and_then(|thought| thought.split_once("</think>"));
    behind.map_or(said, |(_, behind)| behind)
}

/// What stands in a code fence.
fn fenced(said: &str) -> Option<Value> {
    let (_, behind) = said.split_once("```")?;
    let (_, behind) = behind.split_once('\n')?;
    let (inside, _) = behind.rsplit_once("```")?;
    serde_json::from_str(inside.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_json_is_found_in_whatever_a_model_says() {
        let expected = json!({ "name": "Io", "of": ["Jupiter"] });
        for said in [
            r#"{"name": "Io", "of": ["Jupiter"]}"#,
            " \n{\"name\": \"Io\", \"of\": [\"Jupiter\"]}\n",
            "```json\n{\"name\": \"Io\", \"of\": [\"Jupiter\"]}\n```",
            "Here it is:\n```\n{\"name\": \"Io\", \"of\": [\"Jupiter\"]}\n```\nAnything else?",
            r#"Sure! {"name": "Io", "of": ["Jupiter"]} That is all {there is}."#,
            "<think>{\"name\": \"no\"}</think>{\"name\": \"Io\", \"of\": [\"Jupiter\"]}",
        ] {
            assert_eq!(json(said), Ok(expected.clone()), "{said}");
        }
        assert_eq!(json("null"), Ok(Value::Null));
        assert_eq!(json("[1]"), Ok(json!([1])));
    }

    #[test]
    fn what_holds_none_is_said_to_hold_none() {
        for said in [
            "",
            "I cannot do that.",
            "{\"name\": \"I",
            "``` ```",
            "{ { {",
        ] {
            assert!(json(said).is_err(), "{said}");
        }
        assert!(json(&"[".repeat(100_000)).is_err());
    }
}
