//! What an owner may set, and within which bounds: thresholds, attempts, what a stall leads to, how
//! large things may be.
//!
//! The bounds of the branching language stand in [`condition`](crate::condition), those of the watcher's
//! own sleep in [`watcher`](crate::watcher). Nothing here decides.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How long a step may show no sign of life before it is stalled, where nobody said otherwise.
pub const DEFAULT_STALL_THRESHOLD: Duration = Duration::from_secs(30 * 60);
/// The shortest threshold that can be set.
pub const MIN_THRESHOLD: Duration = Duration::from_millis(1);
/// The longest threshold that can be set: 365 days.
pub const MAX_THRESHOLD: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// How often a step is handed out, where nobody said otherwise.
pub const DEFAULT_MAX_ATTEMPTS: u32 = 3;
/// The most attempts that can be set.
pub const MAX_MAX_ATTEMPTS: u32 = 100;

/// The most steps that a plan may hold.
pub const MAX_STEPS: usize = 10_000;
/// The most dependencies that the steps of one command may name together.
pub const MAX_DEPENDENCIES: usize = 100_000;
/// The most branches that a plan may be created with.
pub const MAX_BRANCHES: usize = 10_000;
/// What the patterns of all conditions of one command may take in memory: compiling them takes time.
pub const MAX_PATTERN_BYTES: usize = 4 * 1024 * 1024;
/// The most branches that one step may have: all of them may be tried after one result.
pub const MAX_BRANCHES_PER_STEP: usize = 100;

/// Characters of a plan's name.
pub const MAX_NAME: usize = 200;
/// Characters of a plan's research question.
pub const MAX_QUESTION: usize = 10_000;
/// Characters of a step's instructions.
pub const MAX_INSTRUCTIONS: usize = 100_000;
/// Characters of a step's title.
pub const MAX_TITLE: usize = 200;
/// Characters of a result's or a review's summary.
pub const MAX_SUMMARY: usize = 20_000;
/// Characters of a reason, a rationale, a note, a question or a person's feedback.
pub const MAX_REMARK: usize = 10_000;
/// Questions of one review.
pub const MAX_QUESTIONS: usize = 50;
/// Bytes of a structured result, or of a step's execution report, as JSON.
pub const MAX_RESULT_BYTES: usize = 1024 * 1024;
/// Characters of a skill's name.
pub const MAX_SKILL_NAME: usize = 200;
/// Bytes of what is said about a skill's execution beside its status, as JSON.
pub const MAX_METADATA_BYTES: usize = 64 * 1024;
/// Characters of an artifact's or an output's title.
pub const MAX_ARTIFACT_TITLE: usize = 500;
/// Bytes of an artifact's or an output's content.
pub const MAX_CONTENT_BYTES: usize = 1024 * 1024;
/// Characters of the address that an artifact came from.
pub const MAX_URL: usize = 4_000;
/// Characters of a search.
pub const MAX_SEARCH: usize = 1_000;

/// The longest gap between two signs of life that are recorded, other than a progress report.
pub const SIGN_INTERVAL: Duration = Duration::from_secs(10);

/// What the sweep does about a stall.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum OnStall {
    /// The plan is marked `stalled`, and people are told.
    #[default]
    Mark,
    /// The step is handed back, to be handed out again, until its attempts are used up.
    Requeue,
    /// The step fails.
    Fail,
    /// Nothing, and nobody is told; a plan's status still shows the stall.
    Ignore,
}

impl OnStall {
    /// Every policy.
    pub const ALL: [OnStall; 4] = [
        OnStall::Mark,
        OnStall::Requeue,
        OnStall::Fail,
        OnStall::Ignore,
    ];

    /// The word for it, on the wire and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            OnStall::Mark => "mark",
            OnStall::Requeue => "requeue",
            OnStall::Fail => "fail",
            OnStall::Ignore => "ignore",
        }
    }
}

impl fmt::Display for OnStall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is none of those that fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` is none of {expected}")]
pub struct UnknownWord {
    /// What was given.
    pub word: String,
    /// What would have been understood.
    pub expected: String,
}

/// Finds the value that a word stands for.
pub(crate) fn from_word<T: Copy>(
    word: &str,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Result<T, UnknownWord> {
    all.iter()
        .copied()
        .find(|value| name(*value) == word)
        .ok_or_else(|| UnknownWord {
            word: word.to_owned(),
            expected: all
                .iter()
                .map(|value| format!("`{}`", name(*value)))
                .collect::<Vec<_>>()
                .join(", "),
        })
}

impl FromStr for OnStall {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        from_word(word, &Self::ALL, Self::as_str)
    }
}

/// The threshold that applies to a step: the nearest that was given. A call's own wins over the
/// step's, the step's over the plan's, the plan's over the default.
pub fn stall_threshold(
    call: Option<Duration>,
    step: Option<Duration>,
    plan: Option<Duration>,
) -> Duration {
    call.or(step).or(plan).unwrap_or(DEFAULT_STALL_THRESHOLD)
}
