//! How large a result is: its bytes as compact JSON, its longest list or object, its depth.
//!
//! It writes nothing down and stops early, so that a result of any size is refused in the time
//! that one of a megabyte takes to read. Objects are held to the same number of entries as lists:
//! conditions go through both.

use std::fmt::{self, Write};

use serde_json::Value;

use super::failure::{COUNTED_BYTES, Unevaluable};

/// The largest result that is searched, in bytes of compact JSON.
pub const MAX_SEARCHED_BYTES: usize = 64 * 1024;
/// The longest list or object, at any depth, in a result that is searched.
pub const MAX_ENTRIES: usize = 1000;
/// How deep lists and objects may be nested in a result that is searched.
pub const MAX_DEPTH: usize = 128;

/// Whether a condition may look at this result.
pub(super) fn check(result: &Value) -> Result<(), Unevaluable> {
    let mut tally = Tally { bytes: 0 };
    tally.value(result, 0)?;
    if tally.bytes > MAX_SEARCHED_BYTES {
        return Err(tally.too_large());
    }
    Ok(())
}

struct Tally {
    bytes: usize,
}

impl Tally {
    fn too_large(&self) -> Unevaluable {
        Unevaluable::ResultTooLarge {
            bytes: self.bytes.min(COUNTED_BYTES),
            limit: MAX_SEARCHED_BYTES,
        }
    }

    fn add(&mut self, bytes: usize) -> Result<(), Unevaluable> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes >= COUNTED_BYTES {
            return Err(self.too_large());
        }
        Ok(())
    }

    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Unevaluable> {
        match value {
            Value::Null | Value::Bool(true) => self.add(4),
            Value::Bool(false) => self.add(5),
            Value::Number(number) => {
                let mut digits = Digits(0);
                // Counting cannot fail.
                let _ = write!(digits, "{number}");
                self.add(digits.0)
            }
            Value::String(text) => self.text(text),
            Value::Array(entries) => {
                self.enter(entries.len(), depth)?;
                for entry in entries {
                    self.value(entry, depth + 1)?;
                }
                Ok(())
            }
            Value::Object(entries) => {
                self.enter(entries.len(), depth)?;
                for (key, entry) in entries {
                    self.text(key)?;
                    self.add(":".len())?;
                    self.value(entry, depth + 1)?;
                }
                Ok(())
            }
        }
    }

    /// The brackets and commas of a list or object, if it is within its bounds.
    fn enter(&mut self, entries: usize, depth: usize) -> Result<(), Unevaluable> {
        if entries > MAX_ENTRIES {
            return Err(Unevaluable::ListTooLong {
                entries,
                limit: MAX_ENTRIES,
            });
        }
        if depth >= MAX_DEPTH {
            return Err(Unevaluable::ResultTooDeep { limit: MAX_DEPTH });
        }
        self.add("[]".len() + entries.saturating_sub(1))
    }

    fn text(&mut self, text: &str) -> Result<(), Unevaluable> {
        self.add("\"\"".len())?;
        // Before the bytes are looked at one by one, which a text of gigabytes would not be worth.
        self.add(text.len())?;
        let escapes = text.bytes().map(|byte| match byte {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 1,
            0x00..=0x1f => "u0000".len(),
            _ => 0,
        });
        self.add(escapes.sum())
    }
}

struct Digits(usize);

impl Write for Digits {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}
