//! Arranges the lines of a file after a repair. Lines that are not part of a repair keep their bytes
//! and their place between the others.

use std::collections::HashSet;

/// A line of the repaired file.
pub(super) enum PlacedLine {
    /// A line of the original, by index.
    Kept(usize),
    /// A line of the original with another text.
    Changed(usize, String),
    New(String),
}

impl PlacedLine {
    fn index(&self) -> Option<usize> {
        match self {
            PlacedLine::Kept(index) | PlacedLine::Changed(index, _) => Some(*index),
            PlacedLine::New(_) => None,
        }
    }
}

/// The text with the placed lines in their order. Lines in `rows` that are not placed are removed;
/// all other lines stay before the first placed line that followed them.
pub(super) fn arrange(text: &str, rows: &HashSet<usize>, placed: &[PlacedLine]) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut out = Output::new(text, &lines);
    // A line was moved up if a line before it in the original follows it.
    let mut first_after = vec![usize::MAX; placed.len() + 1];
    for (position, line) in placed.iter().enumerate().rev() {
        let index = line.index().unwrap_or(usize::MAX);
        first_after[position] = first_after[position + 1].min(index);
    }
    let mut next = 0;
    let is_other = |index: &usize| !rows.contains(index);
    for (position, line) in placed.iter().enumerate() {
        if let Some(index) = line
            .index()
            .filter(|index| *index < first_after[position + 1])
        {
            for other in (next..index).filter(is_other) {
                out.push(lines.get(other).copied().unwrap_or_default());
            }
            next = next.max(index + 1);
        }
        match line {
            PlacedLine::Kept(index) => out.push(lines.get(*index).copied().unwrap_or_default()),
            PlacedLine::Changed(_, text) | PlacedLine::New(text) => out.push(text),
        }
    }
    for other in (next..lines.len()).filter(is_other) {
        out.push(lines.get(other).copied().unwrap_or_default());
    }
    out.finish()
}

/// The lines written so far. Every line except the last one ends with a line break.
struct Output {
    text: String,
    line_break: &'static str,
    ends_with_break: bool,
}

impl Output {
    fn new(text: &str, lines: &[&str]) -> Self {
        let is_windows = lines.first().is_some_and(|line| line.ends_with("\r\n"));
        Output {
            text: String::with_capacity(text.len() + 1024),
            line_break: if is_windows { "\r\n" } else { "\n" },
            ends_with_break: text.ends_with('\n'),
        }
    }

    fn push(&mut self, line: &str) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push_str(self.line_break);
        }
        self.text.push_str(line);
    }

    fn finish(mut self) -> String {
        if self.ends_with_break && !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push_str(self.line_break);
        }
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_other_lines_in_their_place() {
        let text = "call\nnote\nanswer\nlast note\nresult";
        let rows = HashSet::from([0, 2, 4]);
        let placed = [
            PlacedLine::Kept(0),
            PlacedLine::Kept(4),
            PlacedLine::New("new".to_owned()),
            PlacedLine::Changed(2, "changed".to_owned()),
        ];
        let arranged = arrange(text, &rows, &placed);
        assert_eq!(arranged, "call\nresult\nnew\nnote\nchanged\nlast note\n");
    }

    #[test]
    fn copies_unchanged_lines_byte_for_byte() {
        let text = "a\r\n\r\n b \r\nc";
        let placed = [
            PlacedLine::Kept(0),
            PlacedLine::Kept(2),
            PlacedLine::Kept(3),
        ];
        assert_eq!(arrange(text, &HashSet::from([0, 2, 3]), &placed), text);
    }
}
