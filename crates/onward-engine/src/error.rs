//! Engine errors: a rejected command, a missing object, or an unavailable database.
//!
//! Every error has a stable code, a message that names the value, and a hint with the next action.

use std::fmt;

use onward_core::call::IllegalCallTransition;
use onward_core::id::ArtifactId;
use onward_core::refusal::Issue;
use onward_core::role::Forbidden;
use onward_core::{Code, Refusal};
use onward_store::{self as store, Hint};

/// Suffix of the message of an error that rejects work. The details contain the artifact's id.
pub const KEPT: &str = "; work kept as `keptArtifactId`";

fn kept_note(kept: &Option<ArtifactId>) -> &'static str {
    kept.map_or("", |_| KEPT)
}

/// Maximum number of objects that an [`Error::Ambiguous`] lists.
pub const MAX_MATCHES: usize = 6;

/// Rows that a lookup by prefix reads: one more than [`MAX_MATCHES`].
pub(crate) const MATCHES: u32 = 7;
const MATCH_ID_CHARS: usize = 8;
const MATCH_NAME_CHARS: usize = 24;

/// The beginning of an id and of a name, for [`Error::Ambiguous`].
pub fn match_entry(id: impl ToString, name: Option<&str>) -> String {
    let id: String = id.to_string().chars().take(MATCH_ID_CHARS).collect();
    let Some(name) = name else {
        return id;
    };
    let short: String = name.chars().take(MATCH_NAME_CHARS).collect();
    let more = if short.len() < name.len() { "…" } else { "" };
    format!("{id} {}{more}", short.trim_end())
}

fn ambiguous(text: &str, kind: &str, matches: &[String]) -> String {
    let listed: Vec<&str> = matches
        .iter()
        .take(MAX_MATCHES)
        .map(String::as_str)
        .collect();
    let (number, more) = if matches.len() > MAX_MATCHES {
        (format!("more than {MAX_MATCHES}"), ", …")
    } else {
        (matches.len().to_string(), "")
    };
    format!(
        "`{text}` matches {number} {kind}: {}{more}",
        listed.join(", ")
    )
}

/// Kind of an object that a request names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectKind {
    /// An artifact.
    Artifact,
    /// A tool call of a session.
    Call,
    /// A plan output.
    Output,
    /// A review.
    Review,
    /// An agent session.
    Session,
    /// A skill execution.
    SkillExecution,
    /// A skill execution, under its name on the pages.
    SkillRun,
    /// A task of an MCP client.
    Task,
    /// A tenant.
    Tenant,
    /// An access token.
    Token,
}

impl ObjectKind {
    /// All kinds.
    pub const ALL: [ObjectKind; 10] = [
        ObjectKind::Artifact,
        ObjectKind::Call,
        ObjectKind::Output,
        ObjectKind::Review,
        ObjectKind::Session,
        ObjectKind::SkillExecution,
        ObjectKind::SkillRun,
        ObjectKind::Task,
        ObjectKind::Tenant,
        ObjectKind::Token,
    ];

    /// The name in messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            ObjectKind::Artifact => "artifact",
            ObjectKind::Call => "call",
            ObjectKind::Output => "output",
            ObjectKind::Review => "review",
            ObjectKind::Session => "session",
            ObjectKind::SkillExecution => "skill execution",
            ObjectKind::SkillRun => "skill run",
            ObjectKind::Task => "task",
            ObjectKind::Tenant => "tenant",
            ObjectKind::Token => "token",
        }
    }

    /// The next action if the object was not found.
    fn hint(self) -> &'static str {
        match self {
            ObjectKind::SkillExecution => "omit `executionId` to start an execution",
            ObjectKind::Artifact => "find the artifact with {search_sources}",
            ObjectKind::Output => "list the plan's outputs with {get_research_context}",
            ObjectKind::Review => "the review was decided or does not exist; see {get_plan_status}",
            ObjectKind::Session | ObjectKind::Call => "get the session ids from {list_sessions}",
            ObjectKind::SkillRun | ObjectKind::Task | ObjectKind::Tenant | ObjectKind::Token => {
                "list the available items and use one of their ids"
            }
        }
    }
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An engine error.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A rule rejects the command. A submitted result is stored as an artifact.
    #[error("{refusal}{}", kept_note(kept))]
    Rejected {
        /// The violated rule.
        refusal: Refusal,
        /// The artifact that contains the submitted result.
        kept: Option<ArtifactId>,
    },
    /// The plan does not exist or belongs to another tenant.
    #[error("plan `{0}` not found")]
    PlanNotFound(String),
    /// The step does not exist or belongs to another tenant. A submitted result is stored as an
    /// artifact.
    #[error("step `{step}` not found{}", kept_note(kept))]
    StepNotFound {
        /// The id from the request.
        step: String,
        /// The artifact that contains the submitted result.
        kept: Option<ArtifactId>,
    },
    /// Text that identifies more than one object.
    #[error("{}", ambiguous(text, kind, matches))]
    Ambiguous {
        /// The text from the request: an id prefix, or a name.
        text: String,
        /// Kind of the objects, plural: `plans`, `steps`, `sessions`, `tokens`.
        kind: &'static str,
        /// The objects, at most [`MAX_MATCHES`] plus one: an id and, if there is one, a name.
        matches: Vec<String>,
    },
    /// The request conflicts with existing data.
    #[error("{message}")]
    Conflict {
        /// The conflict.
        message: String,
        /// The next action.
        hint: Hint,
    },
    /// An object of another kind was not found.
    #[error("{kind} `{name}` not found")]
    NotFound {
        /// Kind of object.
        kind: ObjectKind,
        /// The id or name from the request.
        name: String,
    },
    /// The tool call cannot make this transition in its current state.
    #[error("{0}")]
    IllegalCall(#[from] IllegalCallTransition),
    /// Authentication failed.
    #[error("{0}")]
    Unauthorized(&'static str),
    /// The database is unavailable or damaged.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Error {
    /// The stable error code.
    pub fn code(&self) -> Code {
        match self {
            Error::Rejected { refusal, .. } => refusal.code(),
            Error::PlanNotFound(_) => Code::PlanNotFound,
            Error::StepNotFound { .. } => Code::StepNotFound,
            Error::Ambiguous { .. } | Error::NotFound { .. } => Code::InvalidInput,
            Error::Conflict { .. } => Code::Conflict,
            Error::IllegalCall(_) => Code::IllegalTransition,
            Error::Unauthorized(_) => Code::Unauthorized,
            Error::Store(store::Error::Overloaded(_) | store::Error::LostRace) => Code::RateLimited,
            Error::Store(_) => Code::Unavailable,
        }
    }

    /// The next action, with the names of use cases in braces; see [`Refusal::hint`].
    pub fn hint(&self) -> &'static str {
        match self {
            Error::Rejected { refusal, .. } => refusal.hint(),
            Error::PlanNotFound(_) => "list the plans with {list_active_plans}",
            Error::StepNotFound { .. } => "list the plan's steps with {list_plan_steps}",
            Error::Ambiguous { .. } => "use more characters of the id, or more words",
            Error::Conflict { hint, .. } => hint.text,
            Error::NotFound { kind, .. } => kind.hint(),
            Error::IllegalCall(_) => "the call's state has changed; fetch it again",
            Error::Unauthorized(_) => "ask an owner or admin of the tenant for a token",
            Error::Store(error) => error.hint(),
        }
    }

    /// Whether only an operator can follow the hint, because it names a command to run on the
    /// server.
    pub fn needs_operator(&self) -> bool {
        match self {
            Error::Conflict { hint, .. } => hint.needs_operator,
            Error::Store(error) => error.needs_operator(),
            Error::Rejected { .. }
            | Error::PlanNotFound(_)
            | Error::StepNotFound { .. }
            | Error::Ambiguous { .. }
            | Error::NotFound { .. }
            | Error::IllegalCall(_)
            | Error::Unauthorized(_) => false,
        }
    }

    /// The message for callers who do not operate the server: without hosts, users, files and
    /// statements of the database.
    pub fn public_message(&self) -> String {
        let message = match self {
            Error::Store(store::Error::Unavailable { .. } | store::Error::Address { .. }) => {
                "the database is unavailable"
            }
            Error::Store(store::Error::Overloaded(_)) => "the database is overloaded",
            Error::Store(store::Error::Refused { .. }) => "the database rejected a statement",
            Error::Store(_)
            | Error::Rejected { .. }
            | Error::PlanNotFound(_)
            | Error::StepNotFound { .. }
            | Error::Ambiguous { .. }
            | Error::Conflict { .. }
            | Error::NotFound { .. }
            | Error::IllegalCall(_)
            | Error::Unauthorized(_) => return self.to_string(),
        };
        message.to_owned()
    }

    /// The artifact that contains the rejected result.
    pub fn kept(&self) -> Option<ArtifactId> {
        match self {
            Error::Rejected { kept, .. } | Error::StepNotFound { kept, .. } => *kept,
            Error::PlanNotFound(_)
            | Error::Ambiguous { .. }
            | Error::Conflict { .. }
            | Error::IllegalCall(_)
            | Error::NotFound { .. }
            | Error::Unauthorized(_)
            | Error::Store(_) => None,
        }
    }

    /// An invalid input value.
    pub(crate) fn invalid(path: &str, message: impl Into<String>) -> Self {
        Refusal::InvalidInput(vec![Issue {
            path: path.to_owned(),
            message: message.into(),
        }])
        .into()
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Error::Rejected {
            refusal,
            kept: None,
        }
    }
}

impl From<Forbidden> for Error {
    fn from(forbidden: Forbidden) -> Self {
        Refusal::from(forbidden).into()
    }
}
