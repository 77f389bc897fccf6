//! The line of each field of a plan file, by its path in the arguments.

use std::collections::HashMap;

/// Characters of a field name in a path, as in the paths of issues.
const MAX_NAME: usize = 60;

/// The lines of a text, to find the line of a byte offset.
pub(super) struct LineIndex {
    newlines: Vec<usize>,
}

impl LineIndex {
    pub(super) fn new(text: &str) -> Self {
        let newlines = text.match_indices('\n').map(|(at, _)| at);
        Self {
            newlines: newlines.collect(),
        }
    }

    /// The line of a byte offset, counted from 1.
    pub(super) fn line(&self, offset: usize) -> usize {
        1 + self.newlines.partition_point(|newline| *newline < offset)
    }
}

/// The lines of the fields.
#[derive(Debug, Default)]
pub(super) struct Lines(HashMap<String, usize>);

impl Lines {
    pub(super) fn set(&mut self, path: impl Into<String>, line: usize) {
        self.0.insert(path.into(), line);
    }

    /// The line of the field, or of the nearest object or list that contains it.
    pub(super) fn get(&self, path: &str) -> Option<usize> {
        let mut path = path;
        loop {
            if let Some(line) = self.0.get(path) {
                return Some(*line);
            }
            path = match path.rfind(['.', '[']) {
                Some(end) => &path[..end],
                None if path.is_empty() => return None,
                None => "",
            };
        }
    }
}

/// The path of a field of an object.
pub(super) fn inside(path: &str, name: &str) -> String {
    let name: String = name.chars().take(MAX_NAME).collect();
    if path.is_empty() {
        name
    } else {
        format!("{path}.{name}")
    }
}
