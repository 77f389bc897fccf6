//! The state of a plan for users, in one word, and its start. Pages, commands, API and metrics all
//! use [`attention`], so they always show the same state.
//!
//! The word depends on the steps and on `now`, not on the sweep: a step past its limit is stuck,
//! whether or not the sweep has marked its plan yet.
//!
//! A captured plan is an agent's own list: without an agent it is an unfinished list, which needs no
//! person, and is archived after a while.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::plan::{Origin, PlanHead, PlanState, PlanStatus};
use crate::policy::{UnknownVariant, parse_variant};
use crate::time::Timestamp;

/// How long a plan with a ready step may be without agent activity, by default.
pub const DEFAULT_NO_AGENT_AFTER: Duration = Duration::from_secs(10 * 60);

/// How long after its last activity an unfinished list is archived, by default.
pub const DEFAULT_ARCHIVE_AFTER: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// The state of a plan for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Word {
    /// A step in progress is past its limit, or the budget is exhausted and no step is in progress.
    Stuck,
    /// A review is open.
    NeedsYou,
    /// A step can be claimed, and no agent works on the plan.
    NoAgent,
    /// No step is ready, and none is in progress.
    Blocked,
    /// A step is in progress within its limit, or an agent was active recently.
    Working,
    /// No step was ever claimed, and the plan is new.
    NotStarted,
    /// A captured plan on which no agent works.
    UnfinishedList,
    /// All steps ended, none failed.
    Done,
    /// All steps ended, and some failed.
    DoneWithFailures,
    /// A branch or a rejection failed the plan.
    Failed,
    /// A user cancelled the plan.
    Cancelled,
}

impl Word {
    /// All words, the most urgent first.
    pub const ALL: [Word; 11] = [
        Word::Stuck,
        Word::NeedsYou,
        Word::NoAgent,
        Word::Blocked,
        Word::Working,
        Word::NotStarted,
        Word::UnfinishedList,
        Word::Done,
        Word::DoneWithFailures,
        Word::Failed,
        Word::Cancelled,
    ];

    /// The value in the API and in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Word::Stuck => "stuck",
            Word::NeedsYou => "needs_you",
            Word::NoAgent => "no_agent",
            Word::Blocked => "blocked",
            Word::Working => "working",
            Word::NotStarted => "not_started",
            Word::UnfinishedList => "unfinished_list",
            Word::Done => "done",
            Word::DoneWithFailures => "done_with_failures",
            Word::Failed => "failed",
            Word::Cancelled => "cancelled",
        }
    }

    /// The words on pages and in the terminal.
    pub const fn label(self) -> &'static str {
        match self {
            Word::Stuck => "stuck",
            Word::NeedsYou => "needs you",
            Word::NoAgent => "no agent",
            Word::Blocked => "blocked",
            Word::Working => "working",
            Word::NotStarted => "not started",
            Word::UnfinishedList => "unfinished list",
            Word::Done => "done",
            Word::DoneWithFailures => "done with failures",
            Word::Failed => "failed",
            Word::Cancelled => "cancelled",
        }
    }

    /// The word for an ended plan. `None` if the plan has not ended.
    pub const fn for_ended_plan(
        status: PlanStatus,
        has_failures: bool,
        is_cancelled: bool,
    ) -> Option<Self> {
        match status {
            PlanStatus::Completed if has_failures => Some(Word::DoneWithFailures),
            PlanStatus::Completed => Some(Word::Done),
            PlanStatus::Failed if is_cancelled => Some(Word::Cancelled),
            PlanStatus::Failed => Some(Word::Failed),
            PlanStatus::Planning
            | PlanStatus::Executing
            | PlanStatus::AwaitingReview
            | PlanStatus::Stalled => None,
        }
    }

    /// Whether a person must act for the plan to continue.
    pub const fn needs_person(self) -> bool {
        matches!(
            self,
            Word::Stuck | Word::NeedsYou | Word::NoAgent | Word::Blocked
        )
    }

    /// Whether the plan has ended.
    pub const fn is_ended(self) -> bool {
        matches!(
            self,
            Word::Done | Word::DoneWithFailures | Word::Failed | Word::Cancelled
        )
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Word {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Self, UnknownVariant> {
        parse_variant(text, &Self::ALL, Self::as_str)
    }
}

/// A word, and the start of that state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attention {
    /// The word.
    pub word: Word,
    /// When the state began: the last activity of the stuck step or of the agent, the exhaustion of the
    /// budget, the review request, or the end of the plan.
    pub since: Timestamp,
}

/// The facts about a plan that its word depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The last activity of the step that has been inactive longest, among those past their limit.
    pub stuck_since: Option<Timestamp>,
    /// When the session of the last step in progress ended, if the sessions of all of them have ended.
    pub orphaned_at: Option<Timestamp>,
    /// When the oldest open review was requested.
    pub asked_at: Option<Timestamp>,
    /// Whether a pending step has no open dependency.
    pub has_ready_step: bool,
    /// When the plan was created.
    pub created_at: Timestamp,
    /// The last activity of an agent; see [`Event::is_agent_activity`](crate::Event::is_agent_activity).
    pub worked_at: Timestamp,
}

/// The word for a plan, and since when it applies.
///
/// `no_agent_after` is the time after which a plan with a ready step counts as abandoned by its
/// agent.
pub fn attention(
    head: &PlanHead,
    facts: &Facts,
    now: Timestamp,
    no_agent_after: Duration,
) -> Attention {
    let found = attention_of_caller(head, facts, now, no_agent_after);
    let is_inactive = matches!(found.word, Word::Stuck | Word::NoAgent | Word::Blocked);
    if is_inactive && !head.origin.reports_inactivity() {
        return Attention {
            word: Word::UnfinishedList,
            ..found
        };
    }
    found
}

/// The attention of a plan whose inactivity is reported.
fn attention_of_caller(
    head: &PlanHead,
    facts: &Facts,
    now: Timestamp,
    no_agent_after: Duration,
) -> Attention {
    let at = |word, since| Attention { word, since };
    let has_failures = head.counts.failed > 0;
    let word = Word::for_ended_plan(head.status(), has_failures, head.is_cancelled());
    if let (Some(word), Some(ended_at)) = (word, head.ended_at()) {
        return at(word, ended_at);
    }
    if let Some(since) = facts.stuck_since {
        return at(Word::Stuck, since);
    }
    if head.stopped_by_budget(now).is_some() {
        let since = match head.state {
            PlanState::Stalled { marked_at } => Some(marked_at),
            PlanState::Planning
            | PlanState::Executing
            | PlanState::AwaitingReview { .. }
            | PlanState::Completed { .. }
            | PlanState::Failed { .. } => head.budget.and_then(|budget| budget.ends_at()),
        };
        return at(Word::Stuck, since.unwrap_or(facts.worked_at));
    }
    if head.counts.awaiting_input > 0 {
        return at(Word::NeedsYou, facts.asked_at.unwrap_or(facts.worked_at));
    }
    if let Some(since) = facts.orphaned_at {
        return at(Word::NoAgent, since);
    }
    if head.counts.in_progress > 0 {
        return at(Word::Working, facts.worked_at);
    }
    if !facts.has_ready_step {
        return at(Word::Blocked, facts.worked_at);
    }
    // An agent that works on a list has a task in progress.
    let is_list_at_rest =
        head.status() == PlanStatus::Executing && !head.origin.reports_inactivity();
    if is_list_at_rest || now.since(facts.worked_at) > no_agent_after {
        return at(Word::NoAgent, facts.worked_at);
    }
    match head.state {
        PlanState::Planning => at(Word::NotStarted, facts.created_at),
        PlanState::Executing
        | PlanState::AwaitingReview { .. }
        | PlanState::Stalled { .. }
        | PlanState::Completed { .. }
        | PlanState::Failed { .. } => at(Word::Working, facts.worked_at),
    }
}

/// The last instant at which a plan without any further activity does not count as having no agent.
/// `None` if it has ended, a step is in progress, a review is open, no step is pending, the budget
/// is exhausted, or it is a captured plan.
pub fn no_agent_at(
    head: &PlanHead,
    active_at: Timestamp,
    no_agent_after: Duration,
) -> Option<Timestamp> {
    let counts = &head.counts;
    let is_idle = counts.in_progress == 0 && counts.awaiting_input == 0 && counts.pending > 0;
    let is_open = !head.status().is_terminal() && head.exhausted(active_at).is_none();
    (is_open && is_idle && head.origin.reports_inactivity())
        .then(|| active_at.checked_add(no_agent_after))?
}

/// The time before which the last activity of an archived plan was.
pub fn archived_before(now: Timestamp, archive_after: Duration) -> Timestamp {
    now.saturating_sub(archive_after)
}

/// Whether a plan is archived: default lists omit it, its state does not change. Only captured plans
/// that have not ended are archived.
pub fn is_archived(head: &PlanHead, acted_at: Timestamp, archived_before: Timestamp) -> bool {
    head.origin == Origin::Agent && !head.status().is_terminal() && acted_at < archived_before
}
