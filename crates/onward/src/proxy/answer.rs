//! What a model answers, read while it passes: the events of a stream, or a body as a whole.
//!
//! Reading comes after passing on: nobody waits for it, and an answer that cannot be read (compressed,
//! cut off, of another form) is one of which nothing is known. Here the calls of an answer are seen, and
//! that there are none: then the turn is over.

use axum::body::Bytes;
use onward_core::transcript::Api;
use serde_json::Value;

use super::dialect::{Answer, Piece, dialect};

/// An answer, or one event of it, that is longer is not read.
const LONGEST: usize = 16 << 20;

/// An event of a stream, with its bytes.
pub(super) struct Event {
    pub(super) raw: Vec<u8>,
    data: String,
}

impl Event {
    /// Takes it in, and says what it brings.
    pub(super) fn read(&self, api: Api, answer: &mut Answer) -> Piece {
        match serde_json::from_str::<Value>(&self.data) {
            Ok(event) => dialect(api).event(answer, &event),
            Err(_) => Piece::Other,
        }
    }
}

/// Bytes of a stream, cut into events.
#[derive(Default)]
pub(super) struct Events {
    held: Vec<u8>,
    /// How far no end of an event was found.
    searched: usize,
}

impl Events {
    /// Takes in bytes as they come.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
    }

    /// The next event that has come as a whole.
    pub(super) fn next(&mut self) -> Option<Event> {
        let from = self.searched;
        let end = self
            .held
            .get(from..)?
            .windows(2)
            .enumerate()
            .find_map(|(at, two)| {
                let at = from + at;
                match two {
                    b"\n\n" => Some(at + 2),
                    // A blank line in the manner of HTTP.
                    b"\n\r" if self.held.get(at + 2) == Some(&b'\n') => Some(at + 3),
                    _ => None,
                }
            });
        let Some(end) = end else {
            self.searched = self.held.len().saturating_sub(2);
            return None;
        };
        self.searched = 0;
        let rest = self.held.split_off(end);
        let raw = std::mem::replace(&mut self.held, rest);
        let text = String::from_utf8_lossy(&raw);
        let data: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .map(|data| data.strip_prefix(' ').unwrap_or(data))
            .collect();
        let data = data.join("\n");
        Some(Event { raw, data })
    }

    /// What is left of a stream that is over.
    pub(super) fn rest(self) -> Vec<u8> {
        self.held
    }

    fn is_too_long(&self) -> bool {
        self.held.len() > LONGEST
    }
}

/// In which form an answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Stream,
    Whole,
}

/// Reads an answer that passes.
pub(super) struct Reader {
    api: Api,
    answer: Answer,
    held: Held,
}

enum Held {
    Events(Events),
    Body(Vec<u8>),
    /// It is too long, and is not read any more.
    Nothing,
}

impl Reader {
    pub(super) fn new(api: Api, form: Form) -> Self {
        Self {
            api,
            answer: Answer::unknown(),
            held: match form {
                Form::Stream => Held::Events(Events::default()),
                Form::Whole => Held::Body(Vec::new()),
            },
        }
    }

    /// Takes in bytes that have passed.
    pub(super) fn take(&mut self, bytes: &Bytes) {
        let too_long = match &mut self.held {
            Held::Events(events) => {
                events.push(bytes);
                while let Some(event) = events.next() {
                    event.read(self.api, &mut self.answer);
                }
                events.is_too_long()
            }
            Held::Body(body) => {
                body.extend_from_slice(bytes);
                body.len() > LONGEST
            }
            Held::Nothing => false,
        };
        if too_long {
            self.held = Held::Nothing;
        }
    }

    /// What the answer was, once it is over.
    pub(super) fn end(mut self) -> Answer {
        match self.held {
            Held::Events(_) => self.answer,
            Held::Body(body) => {
                if let Ok(body) = serde_json::from_slice(&body) {
                    dialect(self.api).whole(&mut self.answer, &body);
                }
                self.answer
            }
            Held::Nothing => Answer::unknown(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(pieces: &[&str]) -> Vec<(String, String)> {
        let mut events = Events::default();
        let mut found = Vec::new();
        for piece in pieces {
            events.push(piece.as_bytes());
            while let Some(event) = events.next() {
                found.push((String::from_utf8_lossy(&event.raw).into_owned(), event.data));
            }
        }
        found
    }

    #[test]
    fn an_event_ends_with_a_blank_line_however_it_is_cut_and_written() {
        for (pieces, data) in [
            (&["data: 1\n\ndata: 2\n\n"][..], &["1", "2"][..]),
            (&["da", "ta: 1\n", "\nda", "ta: 2\n\n"], &["1", "2"]),
            (&["data: 1\r\n\r", "\ndata: 2\r\n\r\n"], &["1", "2"]),
            (&["event: a\ndata:1\ndata: 2\n\n"], &["1\n2"]),
            (&[": ping\n\n"], &[""]),
            (&["data: 1\n"], &[]),
        ] {
            let found = events(pieces);
            let read: Vec<&str> = found.iter().map(|(_, data)| data.as_str()).collect();
            assert_eq!(read, data, "{pieces:?}");
            let raw: String = found.iter().map(|(raw, _)| raw.as_str()).collect();
            assert!(pieces.concat().starts_with(&raw), "{pieces:?}");
        }
    }

    #[test]
    fn an_answer_that_is_too_long_is_one_of_which_nothing_is_known() {
        for form in [Form::Whole, Form::Stream] {
            let mut reader = Reader::new(Api::Chat, form);
            let piece = Bytes::from(vec![b'a'; 1 << 20]);
            for _ in 0..20 {
                reader.take(&piece);
            }
            assert!(matches!(reader.held, Held::Nothing));
            assert_eq!(reader.end(), Answer::unknown());
        }
    }
}
