//! Names for things: one newtype per kind of id, so that a step's id cannot stand where a plan's should.
//!
//! Ids are opaque. The core never makes one: it has no randomness, so whoever sends a command brings
//! the fresh ids and tokens along. What agents choose themselves (a session's id) is text.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use uuid::Uuid;

/// A text that is no id at all, and so names nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an id")]
pub struct NotAnId(pub String);

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// Wraps an id that was made, or stored, elsewhere.
            pub const fn new(id: Uuid) -> Self {
                Self(id)
            }

            /// The id as 128 bits; for tests and examples, where ids are counted up.
            pub const fn from_u128(id: u128) -> Self {
                Self(Uuid::from_u128(id))
            }

            /// What a database stores.
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
            type Err = NotAnId;

            fn from_str(text: &str) -> Result<Self, NotAnId> {
                Uuid::try_parse(text).map(Self).map_err(|_| NotAnId(text.to_owned()))
            }
        }
    };
}

id! {
    /// A plan.
    PlanId
}
id! {
    /// A step of a plan. It stays the same when the step's order changes.
    StepId
}
id! {
    /// A branch of a plan.
    BranchId
}
id! {
    /// One pause in which a person decides.
    ReviewId
}
id! {
    /// Something found or made during research.
    ArtifactId
}
id! {
    /// One version of a plan's deliverable.
    OutputId
}
id! {
    /// Data that a model took out of a text.
    ExtractionId
}
id! {
    /// One execution of an agent's skill.
    SkillExecutionId
}
id! {
    /// What somebody said about a plan as a whole.
    FeedbackId
}

/// The id that an agent gives to one run of itself. Any text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(Arc<str>);

impl SessionId {
    /// Takes the agent's own text.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The agent's own text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What proves that a caller holds a step's current claim. Unguessable, made by whoever sends the
/// command. Any text is a token: one that was never given out is simply not the current one.
#[derive(Clone, PartialEq, Eq)]
pub struct ClaimToken(Arc<str>);

impl ClaimToken {
    /// Takes a token's text.
    pub fn new(token: impl Into<Arc<str>>) -> Self {
        Self(token.into())
    }

    /// The token's text, for the answer to the one who claims, and for nobody else.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ClaimToken {
    /// Shows no part of it: whoever can read a log must not be able to finish somebody's step.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClaimToken(…)")
    }
}
