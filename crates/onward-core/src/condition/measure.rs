//! Measures a result: bytes as compact JSON, longest list or object, depth.
//!
//! Nothing is serialized to memory and the count stops early, so that a result of any size is
//! rejected in the time that reading one megabyte takes. Objects have the same limit on entries as
//! lists, because conditions iterate over both.

use std::fmt::{self, Write};

use serde_json::Value;

use super::failure::{COUNTED_BYTES, EvaluationError};

/// The maximum size of a result for evaluation, in bytes of compact JSON.
pub const MAX_EVALUATED_BYTES: usize = 64 * 1024;
/// The maximum number of entries of a list or object at any depth, for evaluation.
pub const MAX_ENTRIES: usize = 1000;
/// The maximum nesting depth of lists and objects, for evaluation.
pub const MAX_DEPTH: usize = 128;

/// Returns an error if the result exceeds a limit.
pub(super) fn check(result: &Value) -> Result<(), EvaluationError> {
    let mut counter = SizeCounter { bytes: 0 };
    counter.value(result, 0)?;
    if counter.bytes > MAX_EVALUATED_BYTES {
        return Err(counter.too_large());
    }
    Ok(())
}

struct SizeCounter {
    bytes: usize,
}

impl SizeCounter {
    fn too_large(&self) -> EvaluationError {
        EvaluationError::ResultTooLarge {
            bytes: self.bytes.min(COUNTED_BYTES),
            limit: MAX_EVALUATED_BYTES,
        }
    }

    fn add(&mut self, bytes: usize) -> Result<(), EvaluationError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes >= COUNTED_BYTES {
            return Err(self.too_large());
        }
        Ok(())
    }

    fn value(&mut self, value: &Value, depth: usize) -> Result<(), EvaluationError> {
        match value {
            Value::Null | Value::Bool(true) => self.add(4),
            Value::Bool(false) => self.add(5),
            Value::Number(number) => {
                let mut length = LengthCounter(0);
                // Infallible: the writer only counts.
                let _ = write!(length, "{number}");
                self.add(length.0)
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

    /// Counts the brackets and commas of a list or object, after checking its limits.
    fn enter(&mut self, entries: usize, depth: usize) -> Result<(), EvaluationError> {
        if entries > MAX_ENTRIES {
            return Err(EvaluationError::ListTooLong {
                entries,
                limit: MAX_ENTRIES,
            });
        }
        if depth >= MAX_DEPTH {
            return Err(EvaluationError::ResultTooDeep { limit: MAX_DEPTH });
        }
        self.add("[]".len() + entries.saturating_sub(1))
    }

    fn text(&mut self, text: &str) -> Result<(), EvaluationError> {
        self.add("\"\"".len())?;
        // Count the length first, so that a huge string is rejected without a scan for escapes.
        self.add(text.len())?;
        let escapes = text.bytes().map(|byte| match byte {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 1,
            0x00..=0x1f => "u0000".len(),
            _ => 0,
        });
        self.add(escapes.sum())
    }
}

struct LengthCounter(usize);

impl Write for LengthCounter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}
