//! Code shared by the OpenAI and Anthropic readers: lists of messages, and the text of a content.
//!
//! A file contains any number of JSON values: lists of messages (`[…]`), requests or records with a
//! list (`{"messages": […]}`), or single messages (`{"role", …}`). Each list is a conversation; all
//! single messages together are one. If the first line is a value, every line is one, and an
//! invalid line is reported and skipped. The file of each API decides which messages are prompts
//! and what the others add to the turn.

use std::borrow::Cow;
use std::ops::ControlFlow;

use serde::de::IgnoredAny;
use serde_json::Value;

use super::lines::{Record, Records, parse};
use super::turn_builder::TurnBuilder;
use super::{Error, Format, Lines, ReaderItem, Turn, Visitor};

/// How an API represents a conversation.
pub(super) struct MessageRules {
    pub(super) format: Format,
    /// The field of a request with the messages.
    pub(super) list: &'static str,
    pub(super) is_message: fn(&Value) -> bool,
    /// Whether a message is a user prompt, which starts a turn.
    pub(super) is_prompt: fn(&Value) -> bool,
    /// Adds a message that is not a prompt to the turn.
    pub(super) add_message: fn(&mut TurnBuilder, &mut Value),
}

/// Reads every conversation.
pub(super) fn read(
    mut lines: Lines,
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
    let first = lines.peek(0)?;
    let on_lines = first.is_some_and(|(_, line)| parse::<IgnoredAny>(line).is_ok());
    let read = if on_lines {
        read_lines(lines, &mut reader)?
    } else {
        read_documents(lines, &mut reader)?
    };
    if read.is_continue() {
        // This is the last turn, so the returned value does not matter.
        let _ = reader.end_turn();
    }
    Ok(())
}

/// Reads one value per line.
fn read_lines(lines: Lines, reader: &mut Reader<'_, '_>) -> Result<ControlFlow<()>, Error> {
    let mut records = Records::new(lines, "messages");
    let mut number = 0;
    while let Some(record) = records.next::<Value>()? {
        number += 1;
        let next = match record {
            Record::Value { value, .. } => reader.document(number, value)?,
            Record::Skipped(report) => (reader.visit)(ReaderItem::Warning(report)),
        };
        if next.is_break() {
            return Ok(next);
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Reads values that extend over several lines.
fn read_documents(lines: Lines, reader: &mut Reader<'_, '_>) -> Result<ControlFlow<()>, Error> {
    let documents = serde_json::Deserializer::from_reader(lines.into_bytes());
    for (number, document) in (1..).zip(documents.into_iter()) {
        let document =
            document.map_err(|cause| Error::from_json(reader.name, 1, "messages", cause))?;
        let next = reader.document(number, document)?;
        if next.is_break() {
            return Ok(next);
        }
    }
    Ok(ControlFlow::Continue(()))
}

struct Reader<'a, 'b> {
    name: &'a str,
    rules: &'a MessageRules,
    visit: &'a mut Visitor<'b>,
    count: u32,
    builder: TurnBuilder,
}

impl Reader<'_, '_> {
    /// Reads one JSON value of the file.
    fn document(&mut self, number: usize, mut document: Value) -> Result<ControlFlow<()>, Error> {
        if (self.rules.is_message)(&document) {
            return Ok(self.message(document));
        }
        let list = match document.get_mut(self.rules.list) {
            Some(list) => list.take(),
            None => document,
        };
        if let Value::Array(messages) = list {
            Ok(self.conversation(messages))
        } else {
            let name = self.name.to_owned();
            Err(Error::NoMessages { name, number })
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
