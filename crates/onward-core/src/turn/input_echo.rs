//! Ignores the parts of an output that repeat the call's input.
//!
//! "No matches found for `x`" and "`x`: command not found" are the same error for every `x`. So the
//! words of the input are masked in the output, and a line that the agent wrote itself is not new.

use std::collections::BTreeSet;

use super::Call;
use super::intent::input_texts;

/// The maximum length of an input to mask. A longer input is a text or a program.
const MAX_INPUT: usize = 200;
/// Replaces one or more consecutive words of the input.
const ECHO: &str = "<echo>";

/// The words of a call's input.
pub(crate) struct InputWords<'a> {
    words: BTreeSet<&'a str>,
}

impl<'a> InputWords<'a> {
    /// The words of a call's tool and input. `None` if the input is too long: then words in the
    /// output are not an echo. An error quotes its input at any length.
    pub(crate) fn from_call(call: &Call<'a>) -> Option<Self> {
        let length: usize = input_texts(call.input).map(str::len).sum();
        if length > MAX_INPUT && call.ok != Some(false) {
            return None;
        }
        let words = input_texts(call.input)
            .chain([call.tool])
            .flat_map(str::split_whitespace)
            .map(trim_punctuation)
            .filter(|word| !word.is_empty())
            .collect();
        Some(InputWords { words })
    }

    /// A line of the output with the input's words masked. `None` if it contains none of them. A
    /// longer path that ends in one of them is not masked.
    pub(crate) fn mask(&self, line: &str) -> Option<String> {
        let mut out = String::with_capacity(line.len());
        let (mut any, mut after_blank) = (false, false);
        for word in line.split_whitespace() {
            let blank = self.words.contains(trim_punctuation(word));
            if !(blank && after_blank) {
                if !out.is_empty() {
                    out.push(' ');
                }
                out.push_str(if blank { ECHO } else { word });
            }
            any |= blank;
            after_blank = blank;
        }
        any.then_some(out)
    }
}

/// A word without surrounding punctuation.
fn trim_punctuation(word: &str) -> &str {
    word.trim_matches(|c: char| "\"'`.,;:!?()[]{}<>“”‘’".contains(c))
}
