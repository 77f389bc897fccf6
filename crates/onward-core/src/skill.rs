//! One execution of an agent's skill: its status with its data, and the transition table.
//!
//! An execution is not part of a plan. It may be linked to one plan; that plan's audit trail then
//! records its start and end, but the plan's status does not depend on it. Reports about an
//! execution are decided in [`decide::report_skill`](crate::decide::report_skill).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::id::{PlanId, SessionId, SkillExecutionId};
use crate::policy::{UnknownVariant, parse_variant};
use crate::time::Timestamp;

/// The metadata key for the media type of the plan's output.
pub const OUTPUT_MEDIA_TYPE: &str = "outputMediaType";
/// The metadata key for formatting instructions for the plan's output.
pub const OUTPUT_FORMATTING: &str = "outputFormattingInstructions";

/// The status of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SkillStatus {
    /// Started.
    Started,
    /// Executing.
    Executing,
    /// Completed. Terminal.
    Completed,
    /// Failed. Terminal.
    Failed,
}

/// A transition that is not in the transition table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cannot change the skill execution to `{to}`: it is `{from}`")]
pub struct IllegalSkillTransition {
    /// The current status.
    pub from: SkillStatus,
    /// The requested status.
    pub to: SkillStatus,
}

impl SkillStatus {
    /// All statuses.
    pub const ALL: [SkillStatus; 4] = [
        SkillStatus::Started,
        SkillStatus::Executing,
        SkillStatus::Completed,
        SkillStatus::Failed,
    ];

    /// The value in the API and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            SkillStatus::Started => "started",
            SkillStatus::Executing => "executing",
            SkillStatus::Completed => "completed",
            SkillStatus::Failed => "failed",
        }
    }

    /// Whether no transition leaves this status.
    pub const fn is_terminal(self) -> bool {
        match self {
            SkillStatus::Started | SkillStatus::Executing => false,
            SkillStatus::Completed | SkillStatus::Failed => true,
        }
    }

    /// The transition table. `executing` may be reported repeatedly; `started` may not, and
    /// terminal statuses do not change.
    pub const fn after(self, to: SkillStatus) -> Result<SkillStatus, IllegalSkillTransition> {
        use SkillStatus as S;
        match (self, to) {
            (S::Started | S::Executing, S::Executing | S::Completed | S::Failed) => Ok(to),
            (S::Started | S::Executing, S::Started) | (S::Completed | S::Failed, _) => {
                Err(IllegalSkillTransition { from: self, to })
            }
        }
    }
}

impl fmt::Display for SkillStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for SkillStatus {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Self, UnknownVariant> {
        parse_variant(text, &Self::ALL, Self::as_str)
    }
}

/// A status with its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkillState {
    /// Started.
    Started,
    /// Executing.
    Executing,
    /// Completed.
    Completed {
        /// When it ended.
        ended_at: Timestamp,
    },
    /// Failed.
    Failed {
        /// When it ended.
        ended_at: Timestamp,
        /// The error, if reported.
        error: Option<String>,
    },
}

/// One execution of a skill.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillExecution {
    /// The execution's id.
    pub id: SkillExecutionId,
    /// The skill's name.
    pub skill: String,
    /// The session, if reported.
    pub session: Option<SessionId>,
    /// The linked plan.
    pub plan: Option<PlanId>,
    /// Additional data from the agent.
    pub metadata: Map<String, Value>,
    /// The status with its data.
    pub state: SkillState,
    /// When it started.
    pub started_at: Timestamp,
    /// The time of the last change.
    pub updated_at: Timestamp,
}

impl SkillExecution {
    /// The status without its data.
    pub const fn status(&self) -> SkillStatus {
        match &self.state {
            SkillState::Started => SkillStatus::Started,
            SkillState::Executing => SkillStatus::Executing,
            SkillState::Completed { .. } => SkillStatus::Completed,
            SkillState::Failed { .. } => SkillStatus::Failed,
        }
    }

    /// When it ended.
    pub const fn ended_at(&self) -> Option<Timestamp> {
        match &self.state {
            SkillState::Started | SkillState::Executing => None,
            SkillState::Completed { ended_at } | SkillState::Failed { ended_at, .. } => {
                Some(*ended_at)
            }
        }
    }

    /// The duration of an ended execution.
    pub fn duration(&self) -> Option<Duration> {
        self.ended_at().map(|at| at.since(self.started_at))
    }

    /// The media type of the plan's output.
    pub fn output_media_type(&self) -> Option<&str> {
        self.metadata.get(OUTPUT_MEDIA_TYPE)?.as_str()
    }

    /// Formatting instructions for the plan's output.
    pub fn output_formatting(&self) -> Option<&str> {
        self.metadata.get(OUTPUT_FORMATTING)?.as_str()
    }
}
