//! A request to a model's API, cut into what is looked at.
//!
//! The rows of the conversation are spans of the text, and only those are read that nobody has looked at
//! yet: a request repeats everything that was said before. What an API's rows mean is said in its own
//! file (`Dialect::row`); here they become turns and steps. A request is changed by edits of its text, so
//! that everything else keeps its bytes.

use std::ops::Range;

use onward_core::transcript::Api;
use onward_core::transcript::json::{self, Object};
use onward_engine::session::SeenCall;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::dialect::{Dialect, dialect};

/// The item that holds tools, where they stand among the items of a request to Responses.
pub(super) const MORE_TOOLS: &str = "additional_tools";

/// Where something stands in a text, and what comes in its place.
pub(super) type Edit = (Range<usize>, String);

/// A request that is understood.
pub(super) struct Request<'a> {
    pub(super) api: Api,
    pub(super) text: &'a str,
    pub(super) fields: Object<'a>,
    rows: Vec<Range<usize>>,
}

/// What a row of a conversation is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Row {
    /// A person's words.
    Prompt(String),
    /// The model's, with what it called.
    Model(Vec<Asked>),
    /// What came of calls.
    Results(Vec<Answered>),
    /// Anything else: the system's, a reminder, a thought.
    Aside,
}

/// A call as the model made it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Asked {
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) input: Value,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answered {
    pub(super) id: String,
    pub(super) ok: Option<bool>,
    pub(super) output: String,
}

/// One model response with the results of its calls.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Step {
    asked: Vec<Asked>,
    answered: Vec<Answered>,
}

/// The message with which a turn began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Prompt {
    /// Which row it is.
    pub(super) row: usize,
    /// What it says, as a digest.
    pub(super) digest: String,
    /// Whether it is the agent's own summary of what was said before.
    pub(super) is_summary: bool,
}

/// How far a conversation was looked at: so many rows, of which one is known again by its meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Anchor {
    rows: usize,
    row: usize,
    digest: String,
}

/// What a request brings.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Look {
    /// Whether it goes on from what was looked at before, so that all steps here are new.
    pub(super) goes_on: bool,
    /// The last message of a person, where one was found.
    pub(super) prompt: Option<Prompt>,
    /// The steps since then.
    pub(super) steps: Vec<Step>,
    /// Where to go on the next time.
    pub(super) anchor: Option<Anchor>,
}

impl<'a> Request<'a> {
    /// The request that a text is; none where it is not understood.
    pub(super) fn read(api: Api, text: &'a str) -> Option<Self> {
        let fields = Object::of(text)?;
        let list = dialect(api).list();
        let rows = match fields.elements(list) {
            Some(rows) => rows.to_vec(),
            // The input of Responses may be a mere text.
            None => fields.string(list).map(|_| Vec::new())?,
        };
        Some(Self {
            api,
            text,
            rows,
            fields,
        })
    }

    fn dialect(&self) -> &'static dyn Dialect {
        dialect(self.api)
    }

    /// Where the list of rows stands.
    pub(super) fn list(&self) -> Range<usize> {
        self.fields.span(self.dialect().list()).unwrap_or_default()
    }

    /// The spans of the rows.
    pub(super) fn rows(&self) -> &[Range<usize>] {
        &self.rows
    }

    /// The text of a row.
    pub(super) fn row(&self, row: usize) -> Option<&'a str> {
        self.text.get(self.rows.get(row)?.clone())
    }

    /// Whether the answer is asked for piece by piece.
    pub(super) fn streams(&self) -> bool {
        self.fields.get("stream") == Some("true")
    }

    /// Whether the model may call tools at all.
    pub(super) fn can_call(&self) -> bool {
        let has = |key| {
            let tools = self.fields.elements(key);
            tools.is_some_and(|tools| !tools.is_empty())
        };
        let choice = self.fields.get("tool_choice").unwrap_or_default();
        let forbidden = json::string(choice).is_some_and(|word| word == "none")
            || Object::of(choice).is_some_and(|choice| {
                let kind = choice.string("type");
                kind.is_some_and(|kind| kind == "none")
            });
        (has("tools") || has("functions") || self.has_tools_among_rows()) && !forbidden
    }

    /// Whether the tools stand among the items, as Codex sends them to some models.
    fn has_tools_among_rows(&self) -> bool {
        let is_list = |row: &Range<usize>| {
            let item = self.text.get(row.clone()).and_then(Object::of);
            item.is_some_and(|item| item.string("type").is_some_and(|kind| kind == MORE_TOOLS))
        };
        self.api == Api::Responses && self.rows.iter().any(is_list)
    }

    /// The answer that this goes on from, where the server remembers the conversation.
    pub(super) fn previous(&self) -> Option<String> {
        let named = self.fields.string("previous_response_id");
        let id = named.filter(|_| self.api == Api::Responses)?;
        (!id.is_empty()).then(|| id.into_owned())
    }

    fn read_row(&self, row: usize) -> Row {
        let value = self.row(row).map(serde_json::from_str::<Value>);
        match value {
            Some(Ok(value)) => self.dialect().row(&value),
            Some(Err(_)) | None => Row::Aside,
        }
    }

    /// What it brings beyond what was looked at already.
    pub(super) fn look(&self, known: Option<&Anchor>) -> Look {
        match known.filter(|anchor| self.holds(anchor)) {
            Some(anchor) => self.look_from(anchor.rows, Some(anchor)),
            None => {
                let last = (0..self.rows.len())
                    .rev()
                    .find(|row| matches!(self.read_row(*row), Row::Prompt(_)));
                self.look_from(last.unwrap_or(0), None)
            }
        }
    }

    fn holds(&self, anchor: &Anchor) -> bool {
        let meaning = || digest_of(&self.read_row(anchor.row));
        self.rows.len() >= anchor.rows && meaning().as_ref() == Some(&anchor.digest)
    }

    fn look_from(&self, from: usize, known: Option<&Anchor>) -> Look {
        let mut prompt = None;
        let mut steps: Vec<Step> = Vec::new();
        let mut anchor = known.cloned();
        for index in from..self.rows.len() {
            let row = self.read_row(index);
            if let Some(digest) = digest_of(&row) {
                let rows = self.rows.len();
                let row = index;
                anchor = Some(Anchor { rows, row, digest });
            }
            match row {
                Row::Prompt(words) => {
                    steps.clear();
                    prompt = Some(Prompt {
                        row: index,
                        digest: digest(&[&words]),
                        is_summary: is_summary(&words),
                    });
                }
                Row::Model(asked) => match steps.last_mut() {
                    Some(step) if step.answered.is_empty() => step.asked.extend(asked),
                    Some(_) | None => steps.push(Step {
                        asked,
                        answered: Vec::new(),
                    }),
                },
                Row::Results(answered) => match steps.last_mut() {
                    Some(step) => step.answered.extend(answered),
                    None => steps.push(Step {
                        asked: Vec::new(),
                        answered,
                    }),
                },
                Row::Aside => {}
            }
        }
        if let Some(anchor) = &mut anchor {
            anchor.rows = self.rows.len();
        }
        if self.rows.is_empty() {
            prompt = self.plain_input();
        }
        steps.retain(|step| !step.answered.is_empty());
        Look {
            goes_on: known.is_some(),
            prompt,
            steps,
            anchor,
        }
    }

    /// Whether the agent itself asks here for a summary of what was said, to go on from it: that is no
    /// turn, and no answer of one.
    pub(super) fn asks_for_summary(&self) -> bool {
        let last = self.rows.len().checked_sub(1);
        let last = last.map(|row| self.read_row(row));
        matches!(last, Some(Row::Prompt(words)) if asks_for_summary(&words))
    }

    /// Whether the conversation begins with the agent's own summary of what was said before.
    pub(super) fn begins_with_summary(&self) -> bool {
        let first = (0..self.rows.len()).find_map(|row| match self.read_row(row) {
            Row::Prompt(words) => Some(is_summary(&words)),
            Row::Model(_) | Row::Results(_) | Row::Aside => None,
        });
        first.unwrap_or(false)
    }

    fn plain_input(&self) -> Option<Prompt> {
        let words = self.fields.string(self.dialect().list())?;
        Some(Prompt {
            row: 0,
            digest: digest(&[&words]),
            is_summary: false,
        })
    }

    /// What the conversation began with, as a digest: the system's words and the first of a person.
    pub(super) fn head(&self) -> String {
        let system = self.dialect().system();
        let system = system.and_then(|key| self.fields.get(key));
        let system: Option<Value> = system.and_then(|text| serde_json::from_str(text).ok());
        let system = system.as_ref().map(words).unwrap_or_default();
        let first = (0..self.rows.len()).find_map(|row| match self.read_row(row) {
            Row::Prompt(words) => Some(words),
            Row::Model(_) | Row::Results(_) | Row::Aside => None,
        });
        let plain = || self.fields.string(self.dialect().list());
        let first = first.or_else(|| plain().map(|words| words.into_owned()));
        digest(&[&system, &first.unwrap_or_default()])
    }
}

impl Step {
    /// The ids of its calls that were answered.
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        self.answered.iter().map(|answered| answered.id.as_str())
    }

    /// Its calls with their results. `remembered` knows calls that are not part of the conversation.
    pub(super) fn seen(self, remembered: impl Fn(&str) -> Option<Asked>) -> Vec<SeenCall> {
        let Step { asked, answered } = self;
        let seen = answered.into_iter().map(|result| {
            let call = asked.iter().find(|call| call.id == result.id).cloned();
            let call = call.or_else(|| remembered(&result.id));
            let (tool, input) = call.map(|call| (call.tool, call.input)).unwrap_or_default();
            SeenCall {
                id: Some(result.id),
                tool,
                input,
                ok: result.ok,
                output: result.output,
            }
        });
        seen.collect()
    }
}

/// A text with its edits made, which do not overlap.
pub(super) fn edited(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|(span, _)| span.start);
    let added: usize = edits.iter().map(|(_, piece)| piece.len()).sum();
    let mut out = String::with_capacity(text.len() + added);
    let mut from = 0;
    for (span, piece) in &edits {
        out.push_str(text.get(from..span.start).unwrap_or_default());
        out.push_str(piece);
        from = span.end;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out
}

/// A member of the request with this value, whether it is there already or not.
pub(super) fn set(request: &Request<'_>, key: &str, value: &str) -> Edit {
    if let Some(span) = request.fields.span(key) {
        return (span, value.to_owned());
    }
    let end = request.text.trim_end().len().saturating_sub(1);
    (end..end, format!(",\"{key}\":{value}"))
}

/// An element at the end of the list that stands here.
pub(super) fn append(text: &str, list: &Range<usize>, element: &str) -> Edit {
    let inside = text.get(list.clone()).unwrap_or_default();
    let is_empty = json::elements(inside).is_none_or(|elements| elements.is_empty());
    let end = list.end.saturating_sub(1);
    let comma = if is_empty { "" } else { "," };
    (end..end, format!("{comma}{element}"))
}

/// What a content says: a text as it is, of a list of blocks their texts, line by line.
pub(super) fn words(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let blocks = content.as_array().into_iter().flatten();
    let texts: Vec<String> = blocks
        .map(|block| match block["text"].as_str().or(block.as_str()) {
            Some(text) => text.to_owned(),
            // A picture is its data, so that another picture is another text.
            None => block.to_string(),
        })
        .collect();
    texts.join("\n")
}

/// A person's words without what the agent puts between tags of its own; none where nothing is left.
pub(super) fn person(text: &str) -> Row {
    const OPENING: &str = "<system-reminder>";
    const CLOSING: &str = "</system-reminder>";
    let mut left = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(OPENING) {
        left.push_str(before);
        rest = after.split_once(CLOSING).map_or("", |(_, after)| after);
    }
    left.push_str(rest);
    match left.trim() {
        "" => Row::Aside,
        words => Row::Prompt(words.to_owned()),
    }
}

/// Whether an agent says with this what it remembers of a conversation that had become too long: the
/// turn goes on then.
fn is_summary(words: &str) -> bool {
    const OPENINGS: [&str; 3] = [
        "This session is being continued from a previous conversation",
        "Another language model started to solve this problem",
        "The following is a summary of the conversation so far",
    ];
    OPENINGS.iter().any(|opening| words.starts_with(opening))
}

/// Whether these are the words with which an agent asks its model for such a summary.
fn asks_for_summary(words: &str) -> bool {
    const OPENINGS: [&str; 2] = [
        "Your task is to create a detailed summary of the conversation so far",
        "You are performing a CONTEXT CHECKPOINT COMPACTION",
    ];
    // Newer versions put a sentence or two before it.
    let end = words.char_indices().nth(600);
    let head = end.and_then(|(end, _)| words.get(..end)).unwrap_or(words);
    OPENINGS.iter().any(|opening| head.contains(opening))
}

/// What a row means, where it can be known again by that.
fn digest_of(row: &Row) -> Option<String> {
    match row {
        Row::Prompt(words) => Some(digest(&[words])),
        Row::Model(asked) if !asked.is_empty() => {
            let ids: Vec<&str> = asked.iter().map(|call| call.id.as_str()).collect();
            Some(digest(&ids))
        }
        Row::Model(_) | Row::Results(_) | Row::Aside => None,
    }
}

/// A short name for texts, the same in every process.
pub(super) fn digest(texts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update(text.len().to_le_bytes());
        hash.update(text.as_bytes());
    }
    let hash = hash.finalize();
    hash.iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The arguments of a call: JSON within a text; where they are not, the text itself.
pub(super) fn arguments(arguments: &Value) -> Value {
    let parsed = arguments.as_str().map(serde_json::from_str);
    match parsed {
        Some(Ok(input)) => input,
        Some(Err(_)) | None => arguments.clone(),
    }
}

/// A field that is a text, or nothing.
pub(super) fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A conversation of Anthropic's API; the last row carries the mark of the agent's cache.
    fn talk(steps: usize, more: &[Value]) -> String {
        let mut rows = vec![json!({ "role": "user", "content": [
            { "type": "text", "text": "<system-reminder>a</system-reminder>" },
            { "type": "text", "text": "Tides?" } ] })];
        for step in 0..steps {
            let id = format!("call_{step}");
            rows.push(json!({ "role": "assistant", "content": [
                { "type": "tool_use", "id": id, "name": "Bash", "input": {} } ] }));
            rows.push(json!({ "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": id, "content": "ok" } ] }));
        }
        rows.extend_from_slice(more);
        if let Some(last) = rows.last_mut() {
            last["content"][0]["cache_control"] = json!({ "type": "ephemeral" });
        }
        json!({ "messages": rows, "tools": [{ "name": "Bash" }] }).to_string()
    }

    #[test]
    fn tools_that_stand_among_the_items_can_be_called_and_taken_away() {
        let asked = |choice: &str| {
            json!({ "tool_choice": choice, "input": [
                { "type": MORE_TOOLS, "role": "developer", "tools": [{ "type": "custom" }] },
                { "type": "message", "role": "user", "content": "Tides?" },
            ] })
        };
        for (choice, expected) in [("auto", true), ("none", false)] {
            let text = asked(choice).to_string();
            let request = Request::read(Api::Responses, &text).expect("a request");
            assert_eq!(request.can_call(), expected, "{choice}");
        }
        let bare = dialect(Api::Responses).without_tools(asked("none"), "Say it in words.");
        assert!(!bare.to_string().contains(MORE_TOOLS), "{bare}");
        assert_eq!(bare["input"].as_array().map(Vec::len), Some(2), "{bare}");
    }

    fn look(text: &str, known: Option<&Anchor>) -> Look {
        let request = Request::read(Api::Anthropic, text).expect("a request");
        request.look(known)
    }

    fn ids(look: &Look) -> Vec<&str> {
        look.steps.iter().flat_map(Step::ids).collect()
    }

    #[test]
    fn only_what_comes_after_the_last_look_is_new() {
        let first = look(&talk(2, &[]), None);
        assert_eq!(ids(&first), ["call_0", "call_1"]);
        assert!(first.prompt.is_some() && !first.goes_on);
        let again = look(&talk(2, &[]), first.anchor.as_ref());
        assert_eq!((ids(&again), again.goes_on), (vec![], true));
        let next = look(&talk(4, &[]), again.anchor.as_ref());
        assert_eq!(ids(&next), ["call_2", "call_3"]);
        assert_eq!(next.prompt, None);
    }

    #[test]
    fn a_conversation_that_went_back_is_looked_at_from_its_last_prompt() {
        let long = look(&talk(3, &[]), None);
        let back = look(&talk(1, &[]), long.anchor.as_ref());
        assert!(!back.goes_on);
        assert_eq!(ids(&back), ["call_0"]);
    }

    #[test]
    fn a_new_message_of_a_person_leaves_what_came_before_it_behind() {
        let first = look(&talk(1, &[]), None);
        let asked = json!({ "role": "user", "content": [{ "type": "text", "text": "And?" }] });
        let reminded = json!({ "role": "user", "content": [
            { "type": "text", "text": "<system-reminder>b</system-reminder>" } ] });
        let next = look(&talk(2, &[asked, reminded]), first.anchor.as_ref());
        assert_eq!(next.prompt.map(|prompt| prompt.row), Some(5));
        assert_eq!(next.steps, []);
    }

    #[test]
    fn edits_change_their_own_places_alone() {
        let text = r#"{ "a" : [1], "b":2 }"#;
        let request = |text| Request::read(Api::Anthropic, text);
        assert!(request(text).is_none(), "it has no rows");
        let text = r#"{ "messages" : [ ], "b":2 } "#;
        let request = request(text).expect("a request");
        let edits = vec![
            set(&request, "c", "3"),
            set(&request, "b", "4"),
            append(text, &request.list(), "5"),
        ];
        assert_eq!(
            edited(text, edits),
            r#"{ "messages" : [ 5], "b":4 ,"c":3} "#
        );
    }
}
