//! Why a step failed.

use std::fmt;

use super::StepCause;

/// Why a step failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailReason {
    /// A caller failed the step with `fail_step`, with an optional reason.
    Manual(Option<String>),
    /// The step stalled, and the policy is `fail`.
    Stalled,
    /// All attempts are used.
    AttemptsExhausted,
    /// A reviewer rejected the step, with optional feedback.
    Rejected(Option<String>),
}

impl FailReason {
    /// All kinds.
    pub const KINDS: [&str; 4] = ["by_hand", "stalled", "attempts_used_up", "rejected"];

    /// The reason of this kind, with the caller's text.
    pub fn from_kind(kind: &str, text: Option<String>) -> Option<Self> {
        match kind {
            "by_hand" => Some(FailReason::Manual(text)),
            "stalled" => Some(FailReason::Stalled),
            "attempts_used_up" => Some(FailReason::AttemptsExhausted),
            "rejected" => Some(FailReason::Rejected(text)),
            _ => None,
        }
    }

    /// The stored value.
    pub const fn kind(&self) -> &'static str {
        match self {
            FailReason::Manual(_) => "by_hand",
            FailReason::Stalled => "stalled",
            FailReason::AttemptsExhausted => "attempts_used_up",
            FailReason::Rejected(_) => "rejected",
        }
    }

    /// The caller's text.
    pub fn text(&self) -> Option<&str> {
        match self {
            FailReason::Manual(text) | FailReason::Rejected(text) => text.as_deref(),
            FailReason::Stalled | FailReason::AttemptsExhausted => None,
        }
    }
}

impl fmt::Display for FailReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FailReason::Manual(Some(reason)) | FailReason::Rejected(Some(reason)) => {
                f.write_str(reason)
            }
            FailReason::Manual(None) => f.write_str("failed manually"),
            FailReason::Stalled => f.write_str("stalled"),
            FailReason::AttemptsExhausted => f.write_str("all attempts used"),
            FailReason::Rejected(None) => f.write_str("rejected"),
        }
    }
}

impl FailReason {
    /// The transition that this failure causes.
    pub const fn cause(&self) -> StepCause {
        match self {
            FailReason::Manual(_) => StepCause::FailManually,
            FailReason::Stalled => StepCause::FailByPolicy,
            FailReason::AttemptsExhausted => StepCause::ExhaustAttempts,
            FailReason::Rejected(_) => StepCause::Reject,
        }
    }
}
