//! Tables with aligned columns. The last column takes the remaining width and is truncated to it.
//!
//! Cells are sanitized. Colour is added after the widths are computed, so it does not affect them.

use super::{Output, Tone, format};

/// The space between two columns.
const GAP: &str = "  ";
/// The minimum width of the last column.
const MIN_LAST_COLUMN: usize = 16;

pub(crate) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

pub(crate) struct Cell {
    text: String,
    tone: Option<Tone>,
    align_right: bool,
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self {
            text: format::sanitize_line(text.as_ref()),
            tone: None,
            align_right: false,
        }
    }
}

impl Cell {
    /// A right-aligned number.
    pub(crate) fn number(number: impl ToString) -> Self {
        Self {
            align_right: true,
            ..Self::from(number.to_string())
        }
    }

    pub(crate) fn toned(text: impl AsRef<str>, tone: Option<Tone>) -> Self {
        Self {
            tone,
            ..Self::from(text)
        }
    }
}

impl Table {
    /// An empty table. If all column names are empty, no header is printed.
    pub(crate) fn new(head: &[&'static str]) -> Self {
        Self {
            head: head.to_vec(),
            rows: Vec::new(),
        }
    }

    pub(crate) fn row<const CELLS: usize>(&mut self, cells: [Cell; CELLS]) {
        self.rows.push(cells.into());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as text, each line indented by a margin.
    pub(crate) fn render(mut self, output: Output, margin: &str) -> String {
        if self.head.iter().any(|name| !name.is_empty()) {
            let head = self.head.iter().map(Cell::from).collect();
            self.rows.insert(0, head);
        }
        let last = self.head.len().saturating_sub(1);
        let widths: Vec<usize> = (0..last)
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                cells
                    .map(|cell| format::width(&cell.text))
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        let used = format::width(margin) + widths.iter().sum::<usize>() + last * GAP.len();
        let last_width = output
            .width()
            .map(|all| all.saturating_sub(used).max(MIN_LAST_COLUMN));
        let mut text = String::new();
        for row in &self.rows {
            let mut line = margin.to_owned();
            for (cell, width) in row.iter().zip(&widths) {
                let padding = " ".repeat(width.saturating_sub(format::width(&cell.text)));
                let text = output.paint(cell.tone, &cell.text);
                let (first, second) = if cell.align_right {
                    (padding, text)
                } else {
                    (text, padding)
                };
                line.push_str(&first);
                line.push_str(&second);
                line.push_str(GAP);
            }
            if let Some(cell) = row.get(last) {
                let text = match last_width {
                    Some(width) => format::truncate(&cell.text, width),
                    None => cell.text.clone(),
                };
                line.push_str(&output.paint(cell.tone, &text));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}
