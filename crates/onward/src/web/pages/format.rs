//! Display formats: relative times, status badges, and truncated text.
//!
//! Types that implement [`HtmlSafe`] write HTML with values of this program only. All other text
//! passes through the templates' escaping.

use std::fmt;

use askama::Template;
use askama::filters::HtmlSafe;
use onward_core::attention::Word;
use onward_core::skill::SkillStatus;
use onward_core::stall::is_past;
use onward_core::{PlanHead, StepStatus, Timestamp};
use onward_engine::{StepLine, StepMark};

use crate::output::format;
use crate::output::status::word_mark;
use crate::output::time::Zone;

/// A time, displayed as "5 min ago" with the exact time in the tooltip.
#[derive(Debug, Clone, Copy)]
pub(super) struct RelativeTime {
    at: Timestamp,
    now: Timestamp,
}

impl RelativeTime {
    pub(super) fn new(at: Timestamp, now: Timestamp) -> Self {
        Self { at, now }
    }
}

impl fmt::Display for RelativeTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at, exact) = (self.at, format::timestamp(self.at));
        let ago = format::ago(self.now, self.at);
        write!(f, "<time datetime=\"{at}\" title=\"{exact}\">{ago}</time>")
    }
}

impl HtmlSafe for RelativeTime {}

/// A time of day, displayed in the time zone of the server, and by the script in that of the browser.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    at: Timestamp,
    now: Timestamp,
}

impl Clock {
    pub(super) fn new(at: Timestamp, now: Timestamp) -> Self {
        Self { at, now }
    }

    pub(super) fn text(&self) -> String {
        let text = Zone::local().time(self.at, self.now);
        text.trim_end_matches('Z').to_owned()
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at, exact) = (self.at, format::timestamp(self.at));
        let text = self.text();
        write!(
            f,
            "<time data-as=\"clock\" datetime=\"{at}\" title=\"{exact}\">{text}</time>"
        )
    }
}

impl HtmlSafe for Clock {}

/// The time since a state began: "3 h 41 min".
#[derive(Debug, Clone, Copy)]
pub(super) struct Age {
    since: Timestamp,
    now: Timestamp,
}

impl Age {
    pub(super) fn new(since: Timestamp, now: Timestamp) -> Self {
        Self { since, now }
    }
}

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at, exact) = (self.since, format::timestamp(self.since));
        let age = format::age(self.now.since(self.since));
        let age = age.replace('<', "&lt;");
        write!(
            f,
            "<time data-as=\"age\" datetime=\"{at}\" title=\"since {exact}\">{age}</time>"
        )
    }
}

impl HtmlSafe for Age {}

/// The start of an id, with the whole id in the tooltip and a button that copies it.
#[derive(Debug, Template)]
#[template(path = "id.html")]
pub(super) struct ShortId {
    id: String,
    short: String,
    link: Option<String>,
}

impl ShortId {
    pub(super) fn new(id: impl ToString) -> Self {
        let id = format::sanitize_line(&id.to_string());
        Self {
            short: format::session_id(&id),
            link: None,
            id,
        }
    }

    /// With a link to the page of the item.
    pub(super) fn linked(self, link: String) -> Self {
        Self {
            link: Some(link),
            ..self
        }
    }
}

impl HtmlSafe for ShortId {}

/// A status with a symbol, so that it does not depend on colour alone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Badge {
    /// The wire name, which is also the CSS class.
    status: &'static str,
    symbol: char,
}

/// The time at which the steps of a plan are displayed. The end of a plan also stops its open steps.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlanTime {
    at: Timestamp,
    is_ended: bool,
    /// Whether inactive steps are stuck.
    can_stall: bool,
    /// Whether it is an unfinished list: no agent works on its steps in progress.
    is_unfinished: bool,
}

impl PlanTime {
    pub(super) fn new(head: &PlanHead, now: Timestamp) -> Self {
        PlanTime {
            at: now,
            is_ended: head.ended_at().is_some(),
            can_stall: head.origin.reports_inactivity(),
            is_unfinished: false,
        }
    }

    /// With the word for the plan.
    pub(super) fn with_word(self, word: Word) -> Self {
        Self {
            is_unfinished: word == Word::UnfinishedList,
            ..self
        }
    }
}

impl Badge {
    /// What a plan needs.
    pub(super) fn attention(word: Word) -> Self {
        let (symbol, _) = word_mark(word);
        Self {
            status: word.as_str(),
            symbol,
        }
    }

    /// A step of a list at this time.
    pub(super) fn line(line: &StepLine, now: PlanTime) -> Self {
        if line.superseded_by.is_some() {
            return Self::SUPERSEDED;
        }
        if line.orphaned_at.is_some() && !now.can_stall && !now.is_ended {
            return Self::UNFINISHED;
        }
        Self::step_at(line.status, line.stalls_at, now)
    }

    /// A step at this time, without its texts.
    pub(super) fn mark(mark: &StepMark, now: PlanTime) -> Self {
        if mark.is_superseded {
            return Self::SUPERSEDED;
        }
        Self::step_at(mark.status, mark.stalls_at, now)
    }

    /// A step that another one redoes.
    pub(super) const SUPERSEDED: Self = Self {
        status: "superseded",
        symbol: '↻',
    };

    /// An open task of an agent's own list that no agent works on.
    const UNFINISHED: Self = Self {
        status: "unfinished",
        symbol: '◌',
    };

    /// A step at this time, in the words of [`Self::attention`].
    pub(super) fn step_at(status: StepStatus, stalls_at: Option<Timestamp>, now: PlanTime) -> Self {
        let (status, symbol) = match status {
            StepStatus::Pending if now.is_ended => ("not_run", '–'),
            StepStatus::InProgress | StepStatus::AwaitingInput if now.is_ended => ("stopped", '■'),
            StepStatus::Pending => ("queued", '○'),
            StepStatus::InProgress if now.is_unfinished => return Self::UNFINISHED,
            StepStatus::InProgress if is_past(stalls_at, now.at) && !now.can_stall => {
                return Self::UNFINISHED;
            }
            StepStatus::InProgress if is_past(stalls_at, now.at) => ("stuck", '▲'),
            StepStatus::InProgress => ("working", '▶'),
            StepStatus::AwaitingInput => ("needs_you", '◆'),
            StepStatus::Completed => ("done", '✓'),
            StepStatus::Skipped => ("skipped", '»'),
            StepStatus::Failed => ("failed", '✕'),
        };
        Self { status, symbol }
    }

    /// The CSS class.
    pub(super) const fn class(&self) -> &'static str {
        self.status
    }

    pub(super) fn skill(status: SkillStatus) -> Self {
        let symbol = match status {
            SkillStatus::Started => '○',
            SkillStatus::Executing => '▶',
            SkillStatus::Completed => '✓',
            SkillStatus::Failed => '✕',
        };
        Self {
            status: status.as_str(),
            symbol,
        }
    }
}

impl fmt::Display for Badge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (status, symbol) = (self.status, self.symbol);
        let label = status_label(status);
        write!(
            f,
            "<span class=\"badge {status}\"><span aria-hidden=\"true\">{symbol}</span> {label}</span>"
        )
    }
}

impl HtmlSafe for Badge {}

/// The label of a status on pages.
pub(super) fn status_label(status: &str) -> String {
    match status {
        "stalled" => "stuck".to_owned(),
        "awaiting_input" => "awaiting review".to_owned(),
        status => status.replace('_', " "),
    }
}

/// Text as one line without control characters, truncated to a number of columns.
pub(super) fn one_line(text: &str, max_columns: usize) -> String {
    format::truncate(&format::sanitize_line(text), max_columns)
}

/// Text with line breaks, without other control characters, truncated.
pub(super) fn multiline(text: &str, max_chars: usize) -> String {
    match truncate(text, max_chars) {
        (text, None) => format::sanitize(text),
        (text, Some(note)) => format!("{}\n{note}", format::sanitize(text)),
    }
}

/// The start of a text, with a note if it was truncated.
pub(super) fn truncate(text: &str, max_chars: usize) -> (&str, Option<String>) {
    let Some((end, _)) = text.char_indices().nth(max_chars) else {
        return (text, None);
    };
    let (start, rest) = text.split_at(end);
    let missing = rest.chars().count();
    let note = format!("… {missing} more characters (see export)");
    (start, Some(note))
}

/// Turns a message into a sentence without backticks. A leading name keeps its case.
pub(super) fn sentence(message: &str) -> String {
    let message = format::sanitize_line(message);
    let starts_with_name = message.starts_with('`');
    let message = message.replace('`', "");
    let mut chars = message.chars();
    let sentence: String = match (starts_with_name, chars.next()) {
        (false, Some(first)) => first.to_uppercase().chain(chars).collect(),
        (true, _) | (_, None) => message,
    };
    if sentence.ends_with(['.', '?', '!', '…']) || sentence.is_empty() {
        sentence
    } else {
        format!("{sentence}.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_of_one_kind_have_distinct_symbols() {
        let at = Timestamp::from_millis(1);
        let now = PlanTime {
            at,
            is_ended: false,
            can_stall: true,
            is_unfinished: false,
        };
        let steps = StepStatus::ALL.map(|status| Badge::step_at(status, None, now));
        let skills = SkillStatus::ALL.map(Badge::skill);
        for all in [&steps[..], &skills[..]] {
            for (index, badge) in all.iter().enumerate() {
                for other in &all[index + 1..] {
                    assert_ne!(
                        badge.symbol, other.symbol,
                        "{}, {}",
                        badge.status, other.status
                    );
                }
            }
        }
        let stuck = Badge::step_at(StepStatus::InProgress, Some(Timestamp::MIN), now);
        assert_eq!(stuck.class(), "stuck");
        let captured = PlanTime {
            can_stall: false,
            ..now
        };
        let list = captured.with_word(Word::UnfinishedList);
        let in_progress = |stalls_at, now| Badge::step_at(StepStatus::InProgress, stalls_at, now);
        let before = Some(Timestamp::from_millis(at.as_millis() - 1));
        assert_eq!(in_progress(before, now).class(), "stuck");
        assert_eq!(in_progress(before, captured).class(), "unfinished");
        assert_eq!(in_progress(Some(at), captured).class(), "working");
        assert_eq!(in_progress(Some(at), list).class(), "unfinished");
        let ended = PlanTime {
            is_ended: true,
            ..now
        };
        let stopped = Badge::step_at(StepStatus::InProgress, Some(Timestamp::MIN), ended);
        assert_eq!(stopped.class(), "stopped");
    }

    #[test]
    fn relative_times_have_an_exact_tooltip() {
        let at: Timestamp = "2026-07-28T09:30:05.123Z".parse().unwrap();
        let now = at.checked_add(std::time::Duration::from_secs(300)).unwrap();
        assert_eq!(
            RelativeTime::new(at, now).to_string(),
            "<time datetime=\"2026-07-28T09:30:05.123Z\" title=\"2026-07-28 09:30:05Z\">\
             5 min ago</time>"
        );
    }

    #[test]
    fn truncated_text_has_the_number_of_missing_characters() {
        assert_eq!(multiline("a\u{202e}b\nc", 10), "a\u{fffd}b\nc");
        assert_eq!(
            multiline("abcdef", 2),
            "ab\n… 4 more characters (see export)"
        );
    }

    #[test]
    fn messages_become_sentences() {
        assert_eq!(sentence("no plan `x`"), "No plan x.");
        assert_eq!(sentence("überhaupt?"), "Überhaupt?");
        assert_eq!(sentence("`planId` is empty"), "planId is empty.");
        assert_eq!(sentence(""), "");
    }
}
