//! A parse error with its byte offset. [`InvalidCondition`](super::InvalidCondition) converts the
//! offset to a line and a column.

/// A message and a byte offset.
#[derive(Debug)]
pub(super) struct ParseError {
    pub(super) at: usize,
    pub(super) message: String,
}

impl ParseError {
    pub(super) fn new(at: usize, message: impl Into<String>) -> ParseError {
        ParseError {
            at,
            message: message.into(),
        }
    }

    /// The same error in a text that starts `offset` bytes earlier.
    pub(super) fn after(self, offset: usize) -> ParseError {
        ParseError {
            at: self.at + offset,
            ..self
        }
    }
}
