//! Code shared by the OpenAI and Anthropic readers: lists of messages, and the text of a content.
//!
//! A file contains any number of JSON values: lists of messages (`[…]`), requests or records with a
//! list (`{"messages": […]}`), or single messages (`{"role", …}`). Each list is a conversation; all
//! single messages together are one. The file of each API decides which messages are prompts and
//! what the others add to the turn.

use std::borrow::Cow;
use std::ops::ControlFlow;

use serde_json::Value;

use super::turn_builder::TurnBuilder;
use super::{Error, Format, Lines, ReaderItem, Turn, Visitor};

/// How an API represents a conversation.
pub(super) struct MessageRules {
    pub(super) format: Format,
    /// Whether a message is a user prompt, which starts a turn.
    pub(super) is_prompt: fn(&Value) -> bool,
    /// Adds a message that is not a prompt to the turn.
    pub(super) add_message: fn(&mut TurnBuilder, &mut Value),
}

/// Reads every conversation.
pub(super) fn read(
    lines: Lines,
    rules: &MessageRules,
    visit: &mut Visitor<'_>,
) -> Result<(), Error> {
    let name = lines.name().to_owned();
    let mut reader = Reader {
        name: &name,
        rules,
        visit,
        count: 0,
        builder: TurnBuilder::default(),
    };
    let documents = serde_json::Deserializer::from_reader(lines.into_bytes());
    for (index, document) in documents.into_iter().enumerate() {
        let document = document.map_err(|cause| Error::from_json(&name, 1, "messages", cause))?;
        match reader.document(document) {
            Some(ControlFlow::Continue(())) => {}
            Some(ControlFlow::Break(())) => return Ok(()),
            None => {
                let number = index + 1;
                return Err(Error::NoMessages { name, number });
            }
        }
    }
    // This is the last turn, so the returned value does not matter.
    let _ = reader.end_turn();
    Ok(())
}

struct Reader<'a, 'b> {
    name: &'a str,
    rules: &'a MessageRules,
    visit: &'a mut Visitor<'b>,
    count: u32,
    builder: TurnBuilder,
}

impl Reader<'_, '_> {
    /// Reads one JSON value of the file, if it contains messages.
    fn document(&mut self, mut document: Value) -> Option<ControlFlow<()>> {
        if document["role"].is_string() {
            return Some(self.message(document));
        }
        let list = match document.get_mut("messages") {
            Some(list) => list.take(),
            None => document,
        };
        if let Value::Array(messages) = list {
            Some(self.conversation(messages))
        } else {
            None
        }
    }

    fn conversation(&mut self, messages: Vec<Value>) -> ControlFlow<()> {
        self.end_turn()?;
        for message in messages {
            self.message(message)?;
        }
        self.end_turn()
    }

    fn message(&mut self, mut message: Value) -> ControlFlow<()> {
        if (self.rules.is_prompt)(&message) {
            return self.end_turn();
        }
        (self.rules.add_message)(&mut self.builder, &mut message);
        ControlFlow::Continue(())
    }

    /// Visits the turn read so far. A prompt without a response is not a turn.
    fn end_turn(&mut self) -> ControlFlow<()> {
        let builder = std::mem::take(&mut self.builder);
        if builder.steps.is_empty() {
            return ControlFlow::Continue(());
        }
        let turn = Turn {
            id: format!("{}#{}", self.name, self.count),
            source: self.rules.format.name().to_owned(),
            steps: builder.steps,
        };
        self.count += 1;
        (self.visit)(ReaderItem::Turn(turn))
    }
}

/// The text of a content: a string, or the texts of its blocks, one per line. An image is its data,
/// so that different images are different texts.
pub(super) fn text(content: &Value) -> Cow<'_, str> {
    if let Some(text) = content.as_str() {
        return Cow::Borrowed(text);
    }
    let Some(blocks) = content.as_array() else {
        return Cow::Borrowed("");
    };
    let texts: Vec<Cow<'_, str>> = blocks
        .iter()
        .map(|block| match block["text"].as_str().or(block.as_str()) {
            Some(text) => Cow::Borrowed(text),
            None => Cow::Owned(block.to_string()),
        })
        .collect();
    Cow::Owned(texts.join("\n"))
}

/// Whether a text is from the user: not empty, and not just a `<system-reminder>` element.
pub(super) fn is_user_prompt(text: &str) -> bool {
    let text = text.trim();
    let is_note = text.starts_with("<system-reminder>") && text.ends_with("</system-reminder>");
    !text.is_empty() && !is_note
}
