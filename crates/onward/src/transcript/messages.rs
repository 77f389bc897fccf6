//! What OpenAI's and Anthropic's messages have in common: where a list of them may stand, and
//! what a person would call the text of a content.
//!
//! A file holds any number of lists (`[…]`), of requests or records with a list
//! (`{"messages": […]}`), or of single messages (`{"role", …}`), which are one conversation, as
//! pretty or as packed as it likes. Each list is a conversation of its own.
//! Which message is a person's prompt, and what the others add to the turn, is for each API's own
//! file to say.

use std::borrow::Cow;
use std::ops::ControlFlow;

use serde_json::Value;

use super::draft::Draft;
use super::{Each, Error, Format, Found, Lines, Turn};

/// One API's way to write a conversation down.
pub(super) struct Dialect {
    pub(super) format: Format,
    /// Whether the message is a person's prompt, so that a turn begins.
    pub(super) is_prompt: fn(&Value) -> bool,
    /// Adds to the turn what a message that is no prompt brings.
    pub(super) take: fn(&mut Draft, &mut Value),
}

/// Reads every conversation.
pub(super) fn read(lines: Lines, dialect: &Dialect, each: &mut Each<'_>) -> Result<(), Error> {
    let name = lines.name().to_owned();
    let mut reading = Reading {
        name: &name,
        dialect,
        each,
        count: 0,
        draft: Draft::default(),
    };
    let documents = serde_json::Deserializer::from_reader(lines.into_bytes());
    for (index, document) in documents.into_iter().enumerate() {
        let document = document.map_err(|cause| Error::of_json(&name, 1, "messages", cause))?;
        match reading.document(document) {
            Some(ControlFlow::Continue(())) => {}
            Some(ControlFlow::Break(())) => return Ok(()),
            None => {
                let number = index + 1;
                return Err(Error::NoMessages { name, number });
            }
        }
    }
    // Nothing comes after the last turn, so it does not matter whether more is wanted.
    let _ = reading.end_turn();
    Ok(())
}

struct Reading<'a, 'b> {
    name: &'a str,
    dialect: &'a Dialect,
    each: &'a mut Each<'b>,
    count: u32,
    draft: Draft,
}

impl Reading<'_, '_> {
    /// Takes one JSON value of the file; none where there are no messages in it.
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
        if (self.dialect.is_prompt)(&message) {
            return self.end_turn();
        }
        (self.dialect.take)(&mut self.draft, &mut message);
        ControlFlow::Continue(())
    }

    /// Hands on the turn that was being read. A prompt that nobody answered is none.
    fn end_turn(&mut self) -> ControlFlow<()> {
        let draft = std::mem::take(&mut self.draft);
        if draft.steps.is_empty() {
            return ControlFlow::Continue(());
        }
        let turn = Turn {
            id: format!("{}#{}", self.name, self.count),
            source: self.dialect.format.name().to_owned(),
            steps: draft.steps,
        };
        self.count += 1;
        (self.each)(Found::Turn(turn))
    }
}

/// What a content says: a text as it is, of a list of blocks their texts, line by line. A picture
/// is its data, so that another picture is another text.
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

/// Whether a person wrote it: not where it is empty, nor where it is only what the agent's harness
/// puts between tags of its own.
pub(super) fn is_from_a_person(text: &str) -> bool {
    let text = text.trim();
    let is_note = text.starts_with("<system-reminder>") && text.ends_with("</system-reminder>");
    !text.is_empty() && !is_note
}
