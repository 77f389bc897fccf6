//! How things are shown on a page: instants, statuses, text that somebody wrote.
//!
//! What implements [`HtmlSafe`] here writes HTML of its own and puts nothing into it but what this
//! program made up; all else goes through the templates' escaping.

use std::fmt;

use askama::filters::HtmlSafe;
use onward_core::call::CallStatus;
use onward_core::skill::SkillStatus;
use onward_core::{PlanStatus, StepStatus, Timestamp};

use crate::output::words;

/// An instant: how long ago, and exactly when.
#[derive(Debug, Clone, Copy)]
pub(super) struct When {
    at: Timestamp,
    now: Timestamp,
}

impl When {
    pub(super) fn new(at: Timestamp, now: Timestamp) -> Self {
        Self { at, now }
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at, exact) = (self.at, words::instant(self.at));
        let ago = words::ago(self.now, self.at);
        write!(f, "<time datetime=\"{at}\" title=\"{exact}\">{ago}</time>")
    }
}

impl HtmlSafe for When {}

/// A status: a shape and a word, and a colour beside them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Badge {
    word: &'static str,
    shape: char,
}

impl Badge {
    pub(super) fn plan(status: PlanStatus) -> Self {
        let shape = match status {
            PlanStatus::Planning => '○',
            PlanStatus::Executing => '▶',
            PlanStatus::AwaitingReview => '◆',
            PlanStatus::Stalled => '▲',
            PlanStatus::Completed => '✓',
            PlanStatus::Failed => '✕',
        };
        Self {
            word: status.as_str(),
            shape,
        }
    }

    pub(super) fn step(status: StepStatus) -> Self {
        let shape = match status {
            StepStatus::Pending => '○',
            StepStatus::InProgress => '▶',
            StepStatus::AwaitingInput => '◆',
            StepStatus::Completed => '✓',
            StepStatus::Skipped => '»',
            StepStatus::Failed => '✕',
        };
        Self {
            word: status.as_str(),
            shape,
        }
    }

    /// A tool call of an agent.
    pub(super) fn call(status: CallStatus) -> Self {
        let shape = match status {
            CallStatus::Requested => '○',
            CallStatus::AwaitingApproval => '◆',
            CallStatus::Running => '▶',
            CallStatus::Completed => '✓',
            CallStatus::Failed => '✕',
            CallStatus::Denied => '⊘',
            CallStatus::Cancelled => '»',
            CallStatus::Interrupted => '▲',
        };
        Self {
            word: status.as_str(),
            shape,
        }
    }

    pub(super) fn skill(status: SkillStatus) -> Self {
        let shape = match status {
            SkillStatus::Started => '○',
            SkillStatus::Executing => '▶',
            SkillStatus::Completed => '✓',
            SkillStatus::Failed => '✕',
        };
        Self {
            word: status.as_str(),
            shape,
        }
    }

    /// A step in progress that nobody hears of any more.
    pub(super) fn stalled() -> Self {
        Self {
            word: "stalled",
            shape: '▲',
        }
    }
}

impl fmt::Display for Badge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, shape) = (self.word, self.shape);
        let said = word.replace('_', " ");
        write!(
            f,
            "<span class=\"badge {word}\"><span aria-hidden=\"true\">{shape}</span> {said}</span>"
        )
    }
}

impl HtmlSafe for Badge {}

/// The beginning of a text on one line.
pub(super) fn gist(text: &str, columns: usize) -> String {
    words::cut(&words::line(text), columns)
}

/// A text with its lines, harmless; where it is very long, its beginning.
pub(super) fn text(text: &str, longest: usize) -> String {
    match beginning(text, longest) {
        (all, None) => words::lines(all),
        (beginning, Some(missing)) => format!("{}\n{missing}", words::lines(beginning)),
    }
}

/// So much of a text, and what is to be said of the rest.
pub(super) fn beginning(text: &str, longest: usize) -> (&str, Option<String>) {
    let Some((end, _)) = text.char_indices().nth(longest) else {
        return (text, None);
    };
    let (beginning, rest) = text.split_at(end);
    let missing = rest.chars().count();
    let said = format!("… ({missing} more characters; the export has all)");
    (beginning, Some(said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_a_shape_and_a_word_of_its_own() {
        let plans = PlanStatus::ALL.map(Badge::plan);
        let steps = StepStatus::ALL.map(Badge::step);
        let calls = CallStatus::ALL.map(Badge::call);
        let skills = SkillStatus::ALL.map(Badge::skill);
        for all in [&plans[..], &steps[..], &calls[..], &skills[..]] {
            for (place, one) in all.iter().enumerate() {
                for other in &all[place + 1..] {
                    assert_ne!(one.shape, other.shape, "{}, {}", one.word, other.word);
                }
            }
        }
        assert!(Badge::stalled().to_string().contains("> stalled<"));
    }

    #[test]
    fn an_instant_is_told_and_exact() {
        let at: Timestamp = "2026-07-28T09:30:05.123Z".parse().unwrap();
        let now = at.checked_add(std::time::Duration::from_secs(300)).unwrap();
        assert_eq!(
            When::new(at, now).to_string(),
            "<time datetime=\"2026-07-28T09:30:05.123Z\" title=\"2026-07-28 09:30:05Z\">\
             5 min ago</time>"
        );
    }

    #[test]
    fn a_long_text_says_how_much_is_missing() {
        assert_eq!(text("a\u{202e}b\nc", 10), "a\u{fffd}b\nc");
        assert_eq!(
            text("abcdef", 2),
            "ab\n… (4 more characters; the export has all)"
        );
    }
}
