//! An answer that gives back its question is judged by what it adds.
//!
//! "No matches found for `x`" says the same for every `x`, and "`x`: command not found" does, too. So
//! the words of the question are blanked in the answer, and a line that the agent wrote itself is no
//! news when it is shown to it.

use std::collections::BTreeSet;

use super::Call;
use super::intent::input_texts;

/// How long a question is at most; what is longer is a text or a program.
const QUESTION: usize = 200;
/// What stands for words of the question, however many.
const BLANK: &str = "<echo>";

/// The words of a question.
pub(crate) struct Question<'a> {
    words: BTreeSet<&'a str>,
}

impl<'a> Question<'a> {
    /// The words of a call's tool and input. `None`: the input is longer than a question, and what it
    /// gives back is an answer although its words stand there, too. A failure quotes what it got,
    /// however long that was.
    pub(crate) fn of(call: &Call<'a>) -> Option<Self> {
        let length: usize = input_texts(call.input).map(str::len).sum();
        if length > QUESTION && call.ok != Some(false) {
            return None;
        }
        let words = input_texts(call.input)
            .chain([call.tool])
            .flat_map(str::split_whitespace)
            .map(bare)
            .filter(|word| !word.is_empty())
            .collect();
        Some(Question { words })
    }

    /// A line of the answer without the words of the question; `None` where it has none of them. A
    /// longer path that ends in one of them is another place, and stays.
    pub(crate) fn blank(&self, line: &str) -> Option<String> {
        let mut out = String::with_capacity(line.len());
        let (mut any, mut after_blank) = (false, false);
        for word in line.split_whitespace() {
            let blank = self.words.contains(bare(word));
            if !(blank && after_blank) {
                if !out.is_empty() {
                    out.push(' ');
                }
                out.push_str(if blank { BLANK } else { word });
            }
            any |= blank;
            after_blank = blank;
        }
        any.then_some(out)
    }
}

/// A word without the punctuation that quotes it or ends it.
fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| "\"'`.,;:!?()[]{}<>“”‘’".contains(c))
}
