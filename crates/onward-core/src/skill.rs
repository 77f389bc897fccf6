//! One execution of an agent's skill: its status with what belongs to it, and the table of moves
//! between the statuses.
//!
//! An execution is no part of a plan. It may be linked to one, once, and then the plan's trail notes
//! when it began and ended; a plan stands wherever it stands, whatever its skills do. What a report
//! about an execution leads to is decided in [`decide::report_skill`](crate::decide::report_skill).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::id::{PlanId, SessionId, SkillExecutionId};
use crate::policy::{UnknownWord, from_word};
use crate::time::Timestamp;

/// The key in the metadata under which a skill says what its plan's output is.
pub const OUTPUT_MEDIA_TYPE: &str = "outputMediaType";
/// The key in the metadata under which a skill says how its plan's output should look.
pub const OUTPUT_FORMATTING: &str = "outputFormattingInstructions";

/// Where an execution stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SkillStatus {
    /// It began.
    Started,
    /// It is at work.
    Executing,
    /// It ended well. Terminal.
    Completed,
    /// It ended badly. Terminal.
    Failed,
}

/// A move that the law of the executions does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a skill execution that is `{from}` cannot become `{asked}`")]
pub struct IllegalSkillMove {
    /// Where the execution stands.
    pub from: SkillStatus,
    /// What was asked of it.
    pub asked: SkillStatus,
}

impl SkillStatus {
    /// Every status.
    pub const ALL: [SkillStatus; 4] = [
        SkillStatus::Started,
        SkillStatus::Executing,
        SkillStatus::Completed,
        SkillStatus::Failed,
    ];

    /// The word for it, on the wire and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            SkillStatus::Started => "started",
            SkillStatus::Executing => "executing",
            SkillStatus::Completed => "completed",
            SkillStatus::Failed => "failed",
        }
    }

    /// Whether nothing can move it any more.
    pub const fn is_terminal(self) -> bool {
        match self {
            SkillStatus::Started | SkillStatus::Executing => false,
            SkillStatus::Completed | SkillStatus::Failed => true,
        }
    }

    /// The table of moves. An execution at work may say so again; nothing starts twice, and what has
    /// ended stays as it ended.
    pub const fn after(self, asked: SkillStatus) -> Result<SkillStatus, IllegalSkillMove> {
        use SkillStatus as S;
        match (self, asked) {
            (S::Started | S::Executing, S::Executing | S::Completed | S::Failed) => Ok(asked),
            (S::Started | S::Executing, S::Started) | (S::Completed | S::Failed, _) => {
                Err(IllegalSkillMove { from: self, asked })
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
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        from_word(word, &Self::ALL, Self::as_str)
    }
}

/// A status with what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkillState {
    /// It began.
    Started,
    /// It is at work.
    Executing,
    /// It ended well.
    Completed {
        /// When.
        ended_at: Timestamp,
    },
    /// It ended badly.
    Failed {
        /// When.
        ended_at: Timestamp,
        /// What went wrong, where the agent said so.
        error: Option<String>,
    },
}

/// One execution of a skill.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillExecution {
    /// Which one.
    pub id: SkillExecutionId,
    /// Of which skill.
    pub skill: String,
    /// Whose, where the agent said so.
    pub session: Option<SessionId>,
    /// The plan that it is linked to.
    pub plan: Option<PlanId>,
    /// Whatever else the agent said about it.
    pub metadata: Map<String, Value>,
    /// Where it stands.
    pub state: SkillState,
    /// When it began.
    pub started_at: Timestamp,
    /// When anything about it last changed.
    pub updated_at: Timestamp,
}

impl SkillExecution {
    /// Where it stands.
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

    /// How long it took, once it has ended.
    pub fn duration(&self) -> Option<Duration> {
        self.ended_at().map(|at| at.since(self.started_at))
    }

    /// What it says that its plan's output is.
    pub fn output_media_type(&self) -> Option<&str> {
        self.metadata.get(OUTPUT_MEDIA_TYPE)?.as_str()
    }

    /// How it says that its plan's output should look.
    pub fn output_formatting(&self) -> Option<&str> {
        self.metadata.get(OUTPUT_FORMATTING)?.as_str()
    }
}
