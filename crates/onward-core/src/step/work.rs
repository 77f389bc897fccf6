//! The data of a step in progress.

use super::Claim;
use crate::id::ArtifactId;
use crate::time::Timestamp;

/// The data of a step in progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// The current claim.
    pub claim: Claim,
    /// When this claim began.
    pub started_at: Timestamp,
    /// The last activity since then.
    pub last_progress_at: Option<Timestamp>,
    /// Whether events of the holder's session are recorded as activity. This happens at intervals,
    /// so the last event may be later than the last record; see [`Step::silence_limit`].
    ///
    /// [`Step::silence_limit`]: crate::Step::silence_limit
    pub monitored: bool,
    /// The reference time of the stall that the plan was marked for. The same stall marks the plan
    /// again only if no agent works on it.
    pub stall_marked: Option<Timestamp>,
    /// When the holder's session ended. Another session can take over the step without waiting for
    /// its stall threshold. Activity of the holder clears it.
    pub orphaned_at: Option<Timestamp>,
    /// A change of the instructions that is not yet delivered to the agent.
    pub undelivered: Option<Undelivered>,
    /// The artifact with the holder's last invalid result. An accepted result supersedes it.
    pub kept: Option<ArtifactId>,
}

/// A change of a step's instructions that is not yet delivered to its agent. Every response to the
/// agent about the step delivers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undelivered {
    /// A reviewer's feedback. The agent waits for it, so `get_next_step` delivers it too.
    Feedback,
    /// New instructions while the agent works.
    Instructions,
}
