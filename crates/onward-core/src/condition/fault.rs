//! What is wrong with the text of a condition, and where. Everybody who reads a part of it may find
//! one; it becomes a line and a column only at the end.

/// What is wrong, and at which byte.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) at: usize,
    pub(super) message: String,
}

impl Fault {
    pub(super) fn new(at: usize, message: impl Into<String>) -> Fault {
        Fault {
            at,
            message: message.into(),
        }
    }

    /// The same fault in a text that starts `offset` bytes earlier.
    pub(super) fn after(self, offset: usize) -> Fault {
        Fault {
            at: self.at + offset,
            ..self
        }
    }
}
