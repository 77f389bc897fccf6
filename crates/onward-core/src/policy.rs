//! Settings and limits: thresholds, attempts, stall policy, sizes.
//!
//! The limits of the condition language are in [`condition`](crate::condition), the settings of the
//! monitor in [`watcher`](crate::watcher).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The default stall threshold of a step.
pub const DEFAULT_STALL_THRESHOLD: Duration = Duration::from_secs(30 * 60);
/// The minimum stall threshold.
pub const MIN_THRESHOLD: Duration = Duration::from_millis(1);
/// The maximum stall threshold: 365 days.
pub const MAX_THRESHOLD: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A recorded time further in the future than this was written by a wrong clock. It counts until the
/// sweep or the next activity replaces it.
pub const CLOCK_TOLERANCE: Duration = Duration::from_secs(60);

/// The default maximum number of attempts per step.
pub const DEFAULT_MAX_ATTEMPTS: u32 = 3;
/// The upper bound of the maximum number of attempts.
pub const MAX_MAX_ATTEMPTS: u32 = 100;

/// The maximum number of steps per plan.
pub const MAX_STEPS: usize = 10_000;
/// The maximum number of steps that one command redoes.
pub const MAX_REDONE: usize = 500;
/// The maximum number of dependencies in one command.
pub const MAX_DEPENDENCIES: usize = 100_000;
/// The maximum number of branches at the creation of a plan.
pub const MAX_BRANCHES: usize = 10_000;
/// The memory limit for the compiled patterns of one command, which also limits compile time.
pub const MAX_PATTERN_BYTES: usize = 4 * 1024 * 1024;
/// The maximum number of branches per step. One result may evaluate all of them.
pub const MAX_BRANCHES_PER_STEP: usize = 100;

/// Maximum characters in a plan's name.
pub const MAX_NAME: usize = 200;
/// Maximum characters in a plan's research question.
pub const MAX_QUESTION: usize = 10_000;
/// Maximum characters in a step's instructions.
pub const MAX_INSTRUCTIONS: usize = 100_000;
/// Maximum characters in a step's title.
pub const MAX_TITLE: usize = 200;
/// Maximum characters in the summary of a result or review.
pub const MAX_SUMMARY: usize = 20_000;
/// Maximum characters in a reason, rationale, note, question or feedback.
pub const MAX_REMARK: usize = 10_000;
/// Maximum questions in one review.
pub const MAX_QUESTIONS: usize = 50;
/// Maximum typed questions in one review.
pub const MAX_FIELDS: usize = 20;
/// Maximum characters in the name of a typed question.
pub const MAX_FIELD_NAME: usize = 64;
/// Maximum values to choose from in one question.
pub const MAX_OPTIONS: usize = 50;
/// Maximum acceptance criteria of a step.
pub const MAX_CRITERIA: usize = 20;
/// Maximum characters in an acceptance criterion.
pub const MAX_CRITERION: usize = 1_000;
/// Maximum entries of evidence in a result.
pub const MAX_EVIDENCE: usize = 100;
/// Maximum characters in the value or the outcome of evidence.
pub const MAX_EVIDENCE_TEXT: usize = 4_000;
/// Maximum bytes of a step's result schema as JSON.
pub const MAX_RESULT_SCHEMA_BYTES: usize = 16 * 1024;
/// Maximum bytes of the result schemas in one command, which limits the time to compile them.
pub const MAX_SCHEMA_BYTES_PER_COMMAND: usize = 256 * 1024;
/// Maximum steps of the validation of a result, about 100 milliseconds.
pub const MAX_VALIDATION_STEPS: u64 = 500_000;
/// Maximum bytes of a structured result or execution report as JSON.
pub const MAX_RESULT_BYTES: usize = 1024 * 1024;
/// Maximum levels of objects and lists in submitted JSON. Well below the limit of JSON parsers (128),
/// because responses and exports contain the value at a deeper level.
pub const MAX_JSON_DEPTH: usize = 64;
/// Maximum values in submitted JSON: objects, lists, texts, numbers. In memory, a value can be a
/// hundred times as large as its text.
pub const MAX_JSON_VALUES: usize = 20_000;
/// Maximum characters in a skill's name.
pub const MAX_SKILL_NAME: usize = 200;
/// Maximum bytes of the metadata of a skill execution as JSON.
pub const MAX_METADATA_BYTES: usize = 64 * 1024;
/// Maximum characters in the title of an artifact or output.
pub const MAX_ARTIFACT_TITLE: usize = 500;
/// Maximum bytes in the content of an artifact or output.
pub const MAX_CONTENT_BYTES: usize = 1024 * 1024;
/// Maximum characters in an artifact's source URL.
pub const MAX_URL: usize = 4_000;
/// Maximum characters in a search query.
pub const MAX_SEARCH: usize = 1_000;
/// Maximum characters in a session id that an agent sends.
pub const MAX_SESSION_ID: usize = 200;
/// Maximum characters in a claim token that an agent sends.
pub const MAX_CLAIM_TOKEN: usize = 200;
/// Maximum characters in the cursor of a list.
pub const MAX_CURSOR: usize = 200;
/// Maximum characters in a time.
pub const MAX_TIME: usize = 64;

/// The sweep's action on a stall.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum OnStall {
    /// Mark the plan as `stalled` and send a notification.
    #[default]
    Mark,
    /// Requeue the step, or fail it after the last attempt.
    Requeue,
    /// Fail the step.
    Fail,
    /// Do nothing and send no notification. Status queries still report the stall.
    Ignore,
}

impl OnStall {
    /// All policies.
    pub const ALL: [OnStall; 4] = [
        OnStall::Mark,
        OnStall::Requeue,
        OnStall::Fail,
        OnStall::Ignore,
    ];

    /// The value in the API and in the database.
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

/// What happens to a step if a step that it depends on fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum OnDependencyFailure {
    /// The step cannot be claimed until the failed step is redone or skipped, or a person lets the
    /// step continue.
    #[default]
    Block,
    /// The step can be claimed. Its agent receives the reason of the failure.
    Continue,
}

impl OnDependencyFailure {
    /// All policies.
    pub const ALL: [OnDependencyFailure; 2] =
        [OnDependencyFailure::Block, OnDependencyFailure::Continue];

    /// The value in the API and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            OnDependencyFailure::Block => "block",
            OnDependencyFailure::Continue => "continue",
        }
    }
}

impl fmt::Display for OnDependencyFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for OnDependencyFailure {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Self, UnknownVariant> {
        parse_variant(text, &Self::ALL, Self::as_str)
    }
}

/// A text that is not one of the expected values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown value `{value}`: expected one of {expected}")]
pub struct UnknownVariant {
    /// The rejected text.
    pub value: String,
    /// The expected values.
    pub expected: String,
}

/// Finds the variant with this name.
pub fn parse_variant<T: Copy>(
    word: &str,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Result<T, UnknownVariant> {
    all.iter()
        .copied()
        .find(|value| name(*value) == word)
        .ok_or_else(|| UnknownVariant {
            value: word.to_owned(),
            expected: all
                .iter()
                .map(|value| format!("`{}`", name(*value)))
                .collect::<Vec<_>>()
                .join(", "),
        })
}

impl FromStr for OnStall {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Self, UnknownVariant> {
        parse_variant(text, &Self::ALL, Self::as_str)
    }
}

/// The stall threshold for a step. Precedence, highest first: call, step, plan, default.
pub fn stall_threshold(
    call: Option<Duration>,
    step: Option<Duration>,
    plan: Option<Duration>,
) -> Duration {
    call.or(step).or(plan).unwrap_or(DEFAULT_STALL_THRESHOLD)
}

/// The minimum interval between records of an active session: a quarter of the step's stall
/// threshold, because sessions report activity with every tool call.
pub fn seen_interval(threshold: Duration) -> Duration {
    (threshold / 4).max(Duration::from_millis(1))
}

/// [`seen_interval`] of a monitored step, from the time after which it is stalled: the threshold
/// plus one interval.
pub fn seen_interval_of_limit(limit: Duration) -> Duration {
    limit / 5
}

/// The interval before the first record of an active session. Shorter, because it makes the step a
/// monitored one; not zero, because every claim of a monitored session is followed by an event.
pub fn first_seen_interval(threshold: Duration) -> Duration {
    (threshold / 16).max(Duration::from_millis(1))
}

/// The minimum interval between records of data written for a step.
pub fn written_interval(threshold: Duration) -> Duration {
    seen_interval(threshold).min(Duration::from_secs(10))
}
