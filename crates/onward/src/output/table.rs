//! Tables with aligned columns that fit the terminal.
//!
//! If a table is wider than the terminal, its flexible columns are truncated; by default, the last
//! one is flexible. In a pipe nothing is truncated, except cells with a maximum width. Cells are
//! sanitized. Colour is added after the widths are computed, so it does not affect them.

use super::{Output, Tone, format};

/// The space between two columns.
const GAP: &str = "  ";
/// The minimum width of a flexible column.
const MIN_FLEXIBLE: usize = 10;

pub(crate) struct Table {
    head: Vec<&'static str>,
    flexible: Vec<usize>,
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
        Self::from(text).with_tone(tone)
    }

    pub(crate) fn with_tone(self, tone: Option<Tone>) -> Self {
        Self { tone, ..self }
    }

    /// A text that is truncated even in a pipe, where a summary would fill the screen.
    pub(crate) fn summary(text: impl AsRef<str>) -> Self {
        let mut cell = Self::from(text);
        cell.text = format::truncate(&cell.text, format::MAX_SUMMARY);
        cell
    }
}

impl Table {
    /// An empty table. If all column names are empty, no header is printed.
    pub(crate) fn new(head: &[&'static str]) -> Self {
        Self {
            head: head.to_vec(),
            flexible: vec![head.len().saturating_sub(1)],
            rows: Vec::new(),
        }
    }

    /// Truncates these columns instead of the last one.
    pub(crate) fn with_flexible(mut self, columns: &[usize]) -> Self {
        self.flexible = columns.to_vec();
        self
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
            let head = self.head.iter();
            let head = head.map(|name| Cell::toned(name, Some(Tone::Heading)));
            self.rows.insert(0, head.collect());
        }
        let widths = self.widths(output.width(), format::width(margin));
        let mut text = String::new();
        for row in &self.rows {
            let mut line = margin.to_owned();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                if column > 0 {
                    line.push_str(GAP);
                }
                let shown = format::truncate(&cell.text, *width);
                let padding = " ".repeat(width.saturating_sub(format::width(&shown)));
                let shown = match &*shown {
                    "" => String::new(),
                    shown => output.paint(cell.tone, shown),
                };
                let (first, second) = if cell.align_right {
                    (padding, shown)
                } else {
                    (shown, padding)
                };
                line.push_str(&first);
                line.push_str(&second);
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// The width of each column. The widest flexible column is narrowed first.
    fn widths(&self, available: Option<usize>, margin: usize) -> Vec<usize> {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| format::width(&cell.text)).max()
        };
        let columns = self.head.len();
        let mut widths: Vec<usize> = (0..columns)
            .map(|column| width(column).unwrap_or(0))
            .collect();
        let gaps = columns.saturating_sub(1) * GAP.len();
        let Some(available) = available else {
            return widths;
        };
        let mut used = margin + gaps + widths.iter().sum::<usize>();
        while used > available {
            let flexible = self.flexible.iter().copied();
            let widest = flexible
                .filter(|column| {
                    widths
                        .get(*column)
                        .is_some_and(|width| *width > MIN_FLEXIBLE)
                })
                .max_by_key(|column| widths[*column]);
            let Some(widest) = widest else {
                return widths;
            };
            widths[widest] -= 1;
            used -= 1;
        }
        widths
    }
}
