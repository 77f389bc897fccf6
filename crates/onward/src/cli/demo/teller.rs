//! How the demo tells what happens: chapters, calls that line up, and sentences that are wrapped. In a
//! pipe there is no colour.

use std::cell::Cell;
use std::time::Duration;

use crate::failure::Result;
use crate::output::{Output, Tone, words};

/// How wide sentences are.
const WIDTH: usize = 78;
/// Everything within a chapter stands behind this.
const MARGIN: &str = "   ";
/// Time to read, and to look at the dashboard.
const PAUSE: Duration = Duration::from_millis(1_800);
/// Time between two calls.
const BREATH: Duration = Duration::from_millis(450);

/// Tells it.
pub(super) struct Teller {
    output: Output,
    is_fast: bool,
    /// Whether sentences stand above, from which calls keep apart.
    is_told: Cell<bool>,
}

impl Teller {
    pub(super) fn new(output: Output, is_fast: bool) -> Self {
        Self {
            output,
            is_fast,
            is_told: Cell::new(false),
        }
    }

    /// Where one looks while it happens.
    pub(super) fn open(&self, url: &str) -> Result<()> {
        self.plain(&wrapped(
            "A scripted agent is going to work on a plan, on a real server with a database of its \
             own. Everything below shows up in the dashboard as it happens:",
            "",
        ))?;
        self.plain(&format!("\n  {url}/plans"))
    }

    /// A chapter begins.
    pub(super) async fn chapter(&self, number: u32, title: &str) -> Result<()> {
        self.wait(PAUSE).await;
        self.is_told.set(false);
        let title = self.output.paint(Some(Tone::Good), title);
        self.plain(&format!("\n{number}. {title}\n"))
    }

    /// A call of somebody, and what came of it.
    pub(super) async fn call(&self, who: &str, tool: &str, what: &str) -> Result<()> {
        self.wait(BREATH).await;
        let what = words::cut(&words::line(what), WIDTH - 34);
        self.line(&format!("{MARGIN}{who:<8} {tool:<22} {what}"))
    }

    /// Something that went wrong, on purpose.
    pub(super) async fn trouble(&self, who: &str, what: &str) -> Result<()> {
        self.wait(BREATH).await;
        let what = self.output.paint(Some(Tone::Bad), &words::line(what));
        self.line(&format!("{MARGIN}{who:<8} {what}"))
    }

    /// What somebody was told, in its own words.
    pub(super) async fn quote(&self, text: &str) -> Result<()> {
        self.wait(BREATH).await;
        let margin = format!("{MARGIN}  | ");
        self.plain(&wrapped(&words::line(text), &margin))
    }

    /// What one is looking at.
    pub(super) async fn explain(&self, text: &str) -> Result<()> {
        self.plain(&format!("\n{}", wrapped(text, MARGIN)))?;
        self.is_told.set(true);
        self.wait(PAUSE).await;
        Ok(())
    }

    /// What can be looked at afterwards, for as long as the server is there.
    pub(super) fn look(&self, url: &str, plan: &str) -> Result<()> {
        self.plain("What to look at now:\n")?;
        for (place, what) in [
            (String::new(), "the timeline, drawn to scale"),
            (
                "?tab=branches".to_owned(),
                "the branches, and what they led to",
            ),
            (
                "?tab=reviews".to_owned(),
                "what was asked, and what was decided",
            ),
            ("?tab=artifacts".to_owned(), "the late result that was kept"),
            ("?tab=audit".to_owned(), "every change, in order"),
            ("?tab=calls".to_owned(), "every call of the agent"),
        ] {
            self.plain(&format!("  {what:<38} {url}/plans/{plan}{place}"))?;
        }
        let what = "the turn that was stuck, the dead call";
        self.plain(&format!("  {what:<38} {url}/sessions/desk"))?;
        self.plain("")
    }

    fn line(&self, text: &str) -> Result<()> {
        let above = if self.is_told.take() { "\n" } else { "" };
        self.plain(&format!("{above}{text}"))
    }

    pub(super) fn plain(&self, text: &str) -> Result<()> {
        self.output.print(&format!("{text}\n"))
    }

    async fn wait(&self, span: Duration) {
        if !self.is_fast {
            tokio::time::sleep(span).await;
        }
    }
}

/// A text in lines that are not too long, each behind the margin.
fn wrapped(text: &str, margin: &str) -> String {
    let room = WIDTH.saturating_sub(words::width(margin));
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if words::width(line) + 1 + words::width(word) <= room => {
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
    fn sentences_are_wrapped_behind_their_margin() {
        let text = "word ".repeat(40);
        let wrapped = wrapped(&text, "  | ");
        let lines: Vec<&str> = wrapped.lines().collect();
        assert_eq!(lines.len(), 3);
        for line in lines {
            assert!(
                line.starts_with("  | word") && line.len() <= WIDTH,
                "{line}"
            );
        }
        assert_eq!(super::wrapped("", "  "), "");
    }
}
