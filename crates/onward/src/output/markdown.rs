//! Markdown of agents as text for a terminal: wrapped paragraphs, lists, tables and code.
//!
//! Control characters are replaced before parsing. HTML is printed as text.

use pulldown_cmark::{Alignment, Event, Options, Parser, Tag, TagEnd};

use super::{Output, Tone, format};

/// Renders Markdown, each line indented by a margin.
pub(crate) fn render(text: &str, output: Output, margin: &str) -> String {
    let columns = output.text_width().saturating_sub(format::width(margin));
    let mut renderer = Renderer {
        output,
        columns: columns.max(20),
        lines: Vec::new(),
        line: String::new(),
        prefixes: Vec::new(),
        lists: Vec::new(),
        is_code: false,
        table: None,
    };
    let text = format::sanitize(text);
    for event in Parser::new_ext(&text, Options::ENABLE_TABLES) {
        renderer.take(event);
    }
    renderer.end_line();
    while renderer.lines.last().is_some_and(String::is_empty) {
        renderer.lines.pop();
    }
    let mut rendered = String::new();
    for line in renderer.lines {
        rendered.push_str(format!("{margin}{line}").trim_end());
        rendered.push('\n');
    }
    rendered
}

struct Renderer {
    output: Output,
    columns: usize,
    lines: Vec<String>,
    /// The text of the current block.
    line: String,
    /// The indentation of each open list item or quotation: of its first line, and of the others.
    prefixes: Vec<(String, String)>,
    /// The next number of each open list; `None` for bullets.
    lists: Vec<Option<u64>>,
    is_code: bool,
    table: Option<MarkdownTable>,
}

struct MarkdownTable {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<String>>,
}

impl Renderer {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.is_code => {
                for line in text.lines() {
                    self.push_line(&format!("    {line}"));
                }
            }
            Event::Text(text) | Event::InlineHtml(text) | Event::Html(text) => {
                self.line.push_str(&text);
            }
            Event::Code(code) => self.line.push_str(&format!("`{code}`")),
            Event::SoftBreak => self.line.push(' '),
            Event::HardBreak => self.end_line(),
            Event::Rule => {
                self.end_line();
                self.push_line("---");
                self.blank();
            }
            Event::FootnoteReference(name) => self.line.push_str(&format!("[{name}]")),
            Event::TaskListMarker(done) => self.line.push_str(if done { "[x] " } else { "[ ] " }),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.line.push_str(&text),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::BlockQuote(_) => {
                self.end_line();
                self.prefixes.push(("> ".to_owned(), "> ".to_owned()));
            }
            Tag::CodeBlock(_) => {
                self.end_line();
                self.is_code = true;
            }
            Tag::List(first) => {
                self.end_line();
                self.lists.push(first);
            }
            Tag::Item => {
                self.end_line();
                let marker = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let marker = format!("{number}. ");
                        *number += 1;
                        marker
                    }
                    Some(None) | None => "- ".to_owned(),
                };
                let rest = " ".repeat(marker.len());
                self.prefixes.push((marker, rest));
            }
            Tag::Table(alignments) => {
                self.end_line();
                self.table = Some(MarkdownTable {
                    alignments,
                    rows: Vec::new(),
                });
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            Tag::Heading { .. }
            | Tag::Paragraph
            | Tag::HtmlBlock
            | Tag::FootnoteDefinition(_)
            | Tag::TableCell
            | Tag::Emphasis
            | Tag::Strong
            | Tag::Strikethrough
            | Tag::Superscript
            | Tag::Subscript
            | Tag::Link { .. }
            | Tag::Image { .. }
            | Tag::MetadataBlock(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => self.end_heading(),
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.end_line();
                if self.lists.is_empty() {
                    self.blank();
                }
            }
            TagEnd::BlockQuote(_) => {
                self.end_line();
                self.prefixes.pop();
                self.blank();
            }
            TagEnd::CodeBlock => {
                self.is_code = false;
                self.blank();
            }
            TagEnd::List(_) => {
                self.end_line();
                self.lists.pop();
                if self.lists.is_empty() {
                    self.blank();
                }
            }
            TagEnd::Item => {
                self.end_line();
                self.prefixes.pop();
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.line);
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(format::sanitize_line(&cell));
                }
            }
            TagEnd::Table => self.end_table(),
            TagEnd::TableHead
            | TagEnd::TableRow
            | TagEnd::FootnoteDefinition
            | TagEnd::Emphasis
            | TagEnd::Strong
            | TagEnd::Strikethrough
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::Link
            | TagEnd::Image
            | TagEnd::MetadataBlock(_)
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition => {}
        }
    }

    fn end_heading(&mut self) {
        let text = std::mem::take(&mut self.line);
        for line in format::wrapped(&text, self.columns) {
            let line = self.output.paint(Some(Tone::Heading), &line);
            self.push_line(&line);
        }
        self.blank();
    }

    /// Ends the current block.
    fn end_line(&mut self) {
        if self.table.is_some() {
            return;
        }
        let text = std::mem::take(&mut self.line);
        let indent: usize = self.prefixes.iter().map(|(first, _)| first.len()).sum();
        let columns = self.columns.saturating_sub(indent).max(20);
        for line in format::wrapped(&text, columns) {
            self.push_line(&line);
        }
    }

    /// Adds a line with the prefixes of the open blocks. The first line of an item has its marker.
    fn push_line(&mut self, line: &str) {
        let mut text = String::new();
        for (first, rest) in &mut self.prefixes {
            text.push_str(first);
            first.clone_from(rest);
        }
        text.push_str(line);
        self.lines.push(text);
    }

    fn blank(&mut self) {
        if self.lines.last().is_some_and(|line| !line.is_empty()) {
            self.lines.push(String::new());
        }
    }

    /// Prints a table with aligned columns. The widest column is narrowed until the table fits; its
    /// cells are wrapped.
    fn end_table(&mut self) {
        let Some(table) = self.table.take() else {
            return;
        };
        let columns = table.alignments.len();
        let width = |column: usize| {
            let cells = table.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| format::width(cell)).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..columns).map(width).collect();
        let gaps = columns.saturating_sub(1) * 2;
        while widths.iter().sum::<usize>() + gaps > self.columns {
            let Some(widest) = widths.iter_mut().max().filter(|width| **width > 8) else {
                break;
            };
            *widest -= 1;
        }
        for (index, row) in table.rows.iter().enumerate() {
            let cells: Vec<Vec<String>> = row
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format::wrapped(cell, *width))
                .collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for number in 0..height {
                let mut line = String::new();
                for (column, (cell, width)) in cells.iter().zip(&widths).enumerate() {
                    let part = cell.get(number).map_or("", String::as_str);
                    let padding = " ".repeat(width.saturating_sub(format::width(part)));
                    if column > 0 {
                        line.push_str("  ");
                    }
                    if table.alignments.get(column) == Some(&Alignment::Right) {
                        line.push_str(&format!("{padding}{part}"));
                    } else {
                        line.push_str(&format!("{part}{padding}"));
                    }
                }
                let tone = (index == 0).then_some(Tone::Heading);
                let line = self.output.paint(tone, line.trim_end());
                self.push_line(&line);
            }
        }
        self.blank();
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, FromArgMatches};

    use super::*;

    fn plain() -> Output {
        let command = Output::augment_args(clap::Command::new("onward"));
        let matches = command.get_matches_from(["onward", "--color", "never"]);
        Output::from_arg_matches(&matches).expect("the flags are valid")
    }

    #[test]
    fn renders_paragraphs_lists_tables_and_code() {
        let text = "# Title\n\nSome *text* with `code`.\n\n1. one\n2. two\n   - nested\n\n\
                    | a | b |\n|---|--:|\n| x | 10 |\n\n```sh\nmake  all\n```\n> quoted";
        assert_eq!(
            render(text, plain(), "  "),
            "  Title\n\n  Some text with `code`.\n\n  1. one\n  2. two\n     - nested\n\n  \
             a   b\n  x  10\n\n      make  all\n\n  > quoted\n"
        );
    }

    #[test]
    fn replaces_control_characters_and_keeps_html_as_text() {
        let text = render("a\u{1b}[2J <b>bold</b>\n\n<script>x</script>", plain(), "");
        assert!(!text.contains('\u{1b}'), "{text:?}");
        assert!(text.contains("<b>bold</b>") && text.contains("<script>x</script>"));
    }
}
