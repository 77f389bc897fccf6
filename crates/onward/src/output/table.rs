//! Columns that line up. The last one takes what room there is, and is cut where that is too little.
//!
//! Cells are harmless lines already, or are made so here. Colour comes after the widths are known, so
//! that a table looks the same without it.

use super::{Output, Tone, words};

/// Between two columns.
const GAP: &str = "  ";
/// The last column is never made narrower than this.
const NARROWEST: usize = 16;

/// Rows under a head.
pub(crate) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

/// One cell.
pub(crate) struct Cell {
    text: String,
    tone: Option<Tone>,
    right: bool,
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self {
            text: words::line(text.as_ref()),
            tone: None,
            right: false,
        }
    }
}

impl Cell {
    /// A number, which stands at the right of its column.
    pub(crate) fn number(number: impl ToString) -> Self {
        Self {
            right: true,
            ..Self::from(number.to_string())
        }
    }

    /// A cell in a tone.
    pub(crate) fn toned(text: impl AsRef<str>, tone: Option<Tone>) -> Self {
        Self {
            tone,
            ..Self::from(text)
        }
    }
}

impl Table {
    /// An empty table. A head of empty names is not shown.
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

    /// The table as text, each line behind a margin.
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
                    .map(|cell| words::width(&cell.text))
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        let taken = words::width(margin) + widths.iter().sum::<usize>() + last * GAP.len();
        let room = output
            .width()
            .map(|all| all.saturating_sub(taken).max(NARROWEST));
        let mut text = String::new();
        for row in &self.rows {
            let mut line = margin.to_owned();
            for (cell, wide) in row.iter().zip(&widths) {
                let room = " ".repeat(wide.saturating_sub(words::width(&cell.text)));
                let text = output.paint(cell.tone, &cell.text);
                let (first, second) = if cell.right {
                    (room, text)
                } else {
                    (text, room)
                };
                line.push_str(&first);
                line.push_str(&second);
                line.push_str(GAP);
            }
            if let Some(cell) = row.get(last) {
                let shown = match room {
                    Some(room) => words::cut(&cell.text, room),
                    None => cell.text.clone(),
                };
                line.push_str(&output.paint(cell.tone, &shown));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}
