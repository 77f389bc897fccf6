//! Ids: one newtype per kind, so that the ids of a step and a plan cannot be confused.
//!
//! Ids are opaque. The core has no randomness and never creates one: the sender of a command
//! supplies new ids and tokens. Ids that agents choose (session ids) are text.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use uuid::Uuid;

/// A text that is not a valid id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid id `{0}`")]
pub struct InvalidId(pub String);

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// Wraps an existing id.
            pub const fn new(id: Uuid) -> Self {
                Self(id)
            }

            /// An id from a number, for the sequential ids of tests and examples.
            pub const fn from_u128(id: u128) -> Self {
                Self(Uuid::from_u128(id))
            }

            /// The UUID, for storage.
            pub const fn as_uuid(&self) -> &Uuid {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Uuid::try_parse(text).map(Self).map_err(|_| InvalidId(text.to_owned()))
            }
        }
    };
}

id! {
    /// A plan.
    PlanId
}
id! {
    /// A step of a plan. Independent of the step's order.
    StepId
}
id! {
    /// A branch of a plan.
    BranchId
}
id! {
    /// A review of a step.
    ReviewId
}
id! {
    /// An artifact of a plan.
    ArtifactId
}
id! {
    /// One version of a plan's output.
    OutputId
}
id! {
    /// Data that a model extracted from a text.
    ExtractionId
}
id! {
    /// One execution of an agent's skill.
    SkillExecutionId
}
id! {
    /// Feedback on a whole plan.
    FeedbackId
}
id! {
    /// A tool call that an MCP client follows as a task.
    TaskId
}

/// The id that an agent assigns to one of its sessions. Any text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(Arc<str>);

impl SessionId {
    /// Wraps the agent's text.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The agent's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A token that proves that a caller holds a step's current claim. The sender of the command
/// generates it from random data. Any text is accepted as a token; an unknown one is never the
/// current token.
#[derive(Clone, PartialEq, Eq)]
pub struct ClaimToken(Arc<str>);

impl ClaimToken {
    /// Wraps a token's text.
    pub fn new(token: impl Into<Arc<str>>) -> Self {
        Self(token.into())
    }

    /// The token's text. Return it only to the caller that holds the claim.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ClaimToken {
    /// Hides the token, because a reader of the logs could use it to complete the step.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClaimToken(…)")
    }
}

/// A reference to a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepRef {
    /// By order.
    Order(u32),
    /// By id.
    Id(StepId),
}
