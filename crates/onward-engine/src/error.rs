//! Why a call was not done: refused by a rule, not found, or the database is away.
//!
//! Every error has a code of the one list that all surfaces share, a message that names what is
//! wrong, and a hint at what helps.

use onward_core::call::IllegalCallMove;
use onward_core::id::ArtifactId;
use onward_core::refusal::Issue;
use onward_core::role::Forbidden;
use onward_core::{Code, Refusal};
use onward_store as store;

/// Why not.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A rule forbids it. What was submitted is kept, where anything was.
    #[error("{refusal}")]
    Refused {
        /// Which rule.
        refusal: Refusal,
        /// Where what was submitted is kept.
        kept: Option<ArtifactId>,
    },
    /// There is no such plan, or it is another tenant's.
    #[error("no plan `{0}`")]
    PlanNotFound(String),
    /// There is no such step, or it is another tenant's. What was submitted is kept.
    #[error("no step `{step}`")]
    StepNotFound {
        /// What was named.
        step: String,
        /// Where what was submitted is kept.
        kept: Option<ArtifactId>,
    },
    /// The beginning of an id that fits more than one.
    #[error("`{0}` is the beginning of more than one id")]
    Ambiguous(String),
    /// Something else is in the way.
    #[error("{message}")]
    Conflict {
        /// What.
        message: String,
        /// What helps.
        hint: &'static str,
    },
    /// There is no such thing of the kind that is named.
    #[error("no {what} `{name}`")]
    NotFound {
        /// A token, a tenant, a skill's execution.
        what: &'static str,
        /// What was named.
        name: String,
    },
    /// A call of an agent cannot go there from where it stands.
    #[error("{0}")]
    IllegalCall(IllegalCallMove),
    /// Who is it?
    #[error("{0}")]
    Unauthorized(&'static str),
    /// The database is away, or damaged.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Error {
    /// The stable name.
    pub fn code(&self) -> Code {
        match self {
            Error::Refused { refusal, .. } => refusal.code(),
            Error::PlanNotFound(_) => Code::PlanNotFound,
            Error::StepNotFound { .. } => Code::StepNotFound,
            Error::Ambiguous(_) | Error::NotFound { .. } => Code::InvalidInput,
            Error::Conflict { .. } => Code::Conflict,
            Error::IllegalCall(_) => Code::IllegalTransition,
            Error::Unauthorized(_) => Code::Unauthorized,
            Error::Store(_) => Code::Unavailable,
        }
    }

    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Error::Refused { refusal, .. } => refusal.hint(),
            Error::PlanNotFound(_) => "`list_active_plans` shows the plans that there are",
            Error::StepNotFound { .. } => {
                "`list_plan_steps` shows the steps of the plan with their ids and orders"
            }
            Error::Ambiguous(_) => "give more characters of the id",
            Error::Conflict { hint, .. } => hint,
            Error::NotFound {
                what: "skill execution",
                ..
            } => "`log_skill_execution` without `executionId` starts one, and names it",
            Error::NotFound {
                what: "artifact", ..
            } => "`search_sources` finds artifacts and names them",
            Error::NotFound { what: "output", .. } => {
                "`get_research_context` shows the outputs of the plan with their ids"
            }
            Error::NotFound {
                what: "session" | "call",
                ..
            } => {
                "a session is known from the first that its agent tells of it; \
                 `onward session list` shows all"
            }
            Error::IllegalCall(_) => "read the call: it has gone on without you",
            Error::NotFound { .. } => "list what there is, and name one of it",
            Error::Unauthorized(_) => "ask an owner or admin of the tenant for a token",
            Error::Store(why) => why.hint(),
        }
    }

    /// Where what was submitted is kept, although it was refused.
    pub fn kept(&self) -> Option<ArtifactId> {
        match self {
            Error::Refused { kept, .. } | Error::StepNotFound { kept, .. } => *kept,
            Error::PlanNotFound(_)
            | Error::Ambiguous(_)
            | Error::Conflict { .. }
            | Error::IllegalCall(_)
            | Error::NotFound { .. }
            | Error::Unauthorized(_)
            | Error::Store(_) => None,
        }
    }

    /// The input does not fit.
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
        Error::Refused {
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
