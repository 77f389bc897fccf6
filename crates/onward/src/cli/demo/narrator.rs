//! Output of the demo: chapters, aligned tool calls and wrapped explanations.

use std::cell::Cell;
use std::time::Duration;

use crate::failure::Result;
use crate::output::{Output, Tone, format};

/// The width of the text.
const WIDTH: usize = 78;
/// The indentation of a chapter.
const MARGIN: &str = "   ";
/// The pause for reading and for looking at the dashboard.
const CHAPTER_PAUSE: Duration = Duration::from_millis(1_800);
/// The pause between two calls.
const CALL_PAUSE: Duration = Duration::from_millis(450);

pub(super) struct Narrator {
    output: Output,
    is_fast: bool,
    /// Whether the last output was an explanation, which a blank line separates from the next call.
    after_explanation: Cell<bool>,
}

impl Narrator {
    pub(super) fn new(output: Output, is_fast: bool) -> Self {
        Self {
            output,
            is_fast,
            after_explanation: Cell::new(false),
        }
    }

    /// Prints the introduction with the URL of the dashboard.
    pub(super) fn introduce(&self, url: &str) -> Result<()> {
        self.print(&wrap(
            "A scripted agent works through a plan on a real server with a temporary database. \
             Follow it on the dashboard:",
            "",
        ))?;
        self.print(&format!("\n  {url}/plans"))
    }

    /// Prints a chapter heading.
    pub(super) async fn chapter(&self, number: u32, title: &str) -> Result<()> {
        self.wait(CHAPTER_PAUSE).await;
        self.after_explanation.set(false);
        let title = self.output.paint(Some(Tone::Heading), title);
        self.print(&format!("\n{number}. {title}\n"))
    }

    /// Prints a tool call with its result.
    pub(super) async fn call(&self, actor: &str, tool: &str, result: &str) -> Result<()> {
        self.wait(CALL_PAUSE).await;
        let result = format::truncate(&format::sanitize_line(result), WIDTH - 34);
        self.line(&format!("{MARGIN}{actor:<8} {tool:<22} {result}"))
    }

    /// Prints an incident.
    pub(super) async fn incident(&self, actor: &str, text: &str) -> Result<()> {
        self.wait(CALL_PAUSE).await;
        let text = self
            .output
            .paint(Some(Tone::Alert), &format::sanitize_line(text));
        self.line(&format!("{MARGIN}{actor:<8} {text}"))
    }

    /// Prints a text that was sent to the agent.
    pub(super) async fn quote(&self, text: &str) -> Result<()> {
        self.wait(CALL_PAUSE).await;
        let margin = format!("{MARGIN}  | ");
        self.print(&wrap(&format::sanitize_line(text), &margin))
    }

    /// Prints an explanation.
    pub(super) async fn explain(&self, text: &str) -> Result<()> {
        self.print(&format!("\n{}", wrap(text, MARGIN)))?;
        self.after_explanation.set(true);
        self.wait(CHAPTER_PAUSE).await;
        Ok(())
    }

    /// Prints the pages of the dashboard that show the results.
    pub(super) fn list_pages(&self, url: &str, plan: &str) -> Result<()> {
        self.print("Dashboard pages:\n")?;
        for (query, page) in [
            (String::new(), "timeline"),
            ("?tab=branches".to_owned(), "branches and their results"),
            ("?tab=reviews".to_owned(), "review and decision"),
            (
                "?tab=artifacts".to_owned(),
                "late result, stored as an artifact",
            ),
            ("?tab=audit".to_owned(), "audit trail"),
            ("?tab=calls".to_owned(), "tool calls"),
        ] {
            self.print(&format!("  {page:<38} {url}/plans/{plan}{query}"))?;
        }
        let page = "looping turn and dead call";
        self.print(&format!("  {page:<38} {url}/sessions/desk"))?;
        self.print("")
    }

    fn line(&self, text: &str) -> Result<()> {
        let above = if self.after_explanation.take() {
            "\n"
        } else {
            ""
        };
        self.print(&format!("{above}{text}"))
    }

    pub(super) fn print(&self, text: &str) -> Result<()> {
        self.output.print(&format!("{text}\n"))
    }

    async fn wait(&self, duration: Duration) {
        if !self.is_fast {
            tokio::time::sleep(duration).await;
        }
    }
}

/// Wraps a text at [`WIDTH`], each line indented by the margin.
fn wrap(text: &str, margin: &str) -> String {
    let width = WIDTH.saturating_sub(format::width(margin));
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if format::width(line) + 1 + format::width(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) | None => lines.push(word.to_owned()),
        }
    }
    let lines: Vec<String> = lines.iter().map(|line| format!("{margin}{line}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_text_with_a_margin() {
        let text = "word ".repeat(40);
        let wrapped = wrap(&text, "  | ");
        let lines: Vec<&str> = wrapped.lines().collect();
        assert_eq!(lines.len(), 3);
        for line in lines {
            assert!(
                line.starts_with("  | word") && line.len() <= WIDTH,
                "{line}"
            );
        }
        assert_eq!(wrap("", "  "), "");
    }
}
