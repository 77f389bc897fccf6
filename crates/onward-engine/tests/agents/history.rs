//! The recorded history of agents: a record before each call and one after its response.
//!
//! Worker processes write records to stdout. A line is a prefix and a JSON array of strings; other
//! lines are ignored.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use onward_core::{PlanId, StepId};

const PREFIX: &str = "onward ";

/// A claim as returned to the agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Claim {
    pub step: StepId,
    pub attempt: u32,
    pub token: String,
}

/// A call that an agent is about to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    Create,
    Next,
    Submit { digest: String, claim_next: bool },
    Progress,
    Review,
    Decide,
    Modify,
}

/// The response to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response {
    Created {
        plan: PlanId,
        digest: String,
    },
    Claimed {
        plan: PlanId,
        claim: Claim,
    },
    Completed {
        plan: PlanId,
        step: StepId,
        digest: String,
        next: Option<Claim>,
    },
    /// A rule rejected the call, and its content is stored as an artifact.
    LateResultKept {
        plan: PlanId,
        artifact: String,
        text: String,
    },
    ProgressRecorded {
        plan: PlanId,
        step: StepId,
        note: String,
    },
    ReviewRequested {
        plan: PlanId,
        step: StepId,
        review: String,
    },
    ReviewDecided {
        plan: PlanId,
        step: StepId,
        feedback: String,
    },
    Modified {
        plan: PlanId,
        seq: u64,
    },
    /// The response to a repeated call equals the first one.
    Repeated,
    /// A rule rejected the call, or no step was assigned.
    NoChange {
        reason: String,
    },
    Failed {
        kind: FailureKind,
        hint: String,
        message: String,
    },
}

/// Why a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The database was unavailable, and the change was not made.
    Unavailable,
    /// The database was unavailable, and the change may have been made.
    OutcomeUnknown,
    /// Any other store error.
    OtherStoreError,
    /// A repeated call returned a different response.
    ResponseChanged,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordKind {
    /// The process has opened its database.
    Ready,
    Call(Call),
    Response(Response),
}

/// A record of one agent. `micros` is the duration of the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub agent: String,
    pub micros: u64,
    pub kind: RecordKind,
}

/// Receives the records of all agents of a process.
pub type RecordSink = Arc<dyn Fn(Record) + Send + Sync>;

/// Writes each record to stdout and flushes it.
pub fn stdout_sink() -> RecordSink {
    use std::io::Write as _;
    Arc::new(|record: Record| {
        let mut text = record.to_line();
        text.push('\n');
        let mut out = std::io::stdout().lock();
        // Fails if the parent has exited; the worker then exits as well.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    })
}

/// A hash of the value's `Debug` output.
pub fn digest(value: &impl std::fmt::Debug) -> String {
    let mut hasher = DefaultHasher::new();
    format!("{value:?}").hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

impl Record {
    pub fn is_response(&self) -> bool {
        matches!(self.kind, RecordKind::Response(_))
    }

    pub fn is_failure(&self) -> bool {
        matches!(self.kind, RecordKind::Response(Response::Failed { .. }))
    }

    pub fn to_line(&self) -> String {
        let mut fields = vec![self.agent.clone(), self.micros.to_string()];
        fields.extend(self.kind.fields());
        let list = serde_json::to_string(&fields).expect("strings are serializable");
        format!("{PREFIX}{list}")
    }

    /// `None` if the line is not a record.
    pub fn parse(text: &str) -> Option<Self> {
        // The test harness writes text without a line break before the first record.
        let text = &text[text.find(PREFIX)?..];
        let fields: Vec<String> = serde_json::from_str(text.strip_prefix(PREFIX)?).ok()?;
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        let [agent, micros, rest @ ..] = fields.as_slice() else {
            return None;
        };
        let kind = RecordKind::parse(rest).unwrap_or_else(|| panic!("invalid record `{text}`"));
        let micros = micros.parse().ok()?;
        let agent = (*agent).to_owned();
        Some(Self {
            agent,
            micros,
            kind,
        })
    }
}

impl RecordKind {
    fn fields(&self) -> Vec<String> {
        let response = match self {
            RecordKind::Ready => return fields(&["ready"]),
            RecordKind::Call(Call::Submit { digest, claim_next }) => {
                return fields(&[
                    "call-submit",
                    digest,
                    if *claim_next { "claim_next" } else { "" },
                ]);
            }
            RecordKind::Call(call) => return fields(&["call", call.as_str()]),
            RecordKind::Response(response) => response,
        };
        match response {
            Response::Created { plan, digest } => fields(&["created", &plan.to_string(), digest]),
            Response::Claimed { plan, claim } => {
                let mut all = fields(&["claimed", &plan.to_string()]);
                all.extend(claim.fields());
                all
            }
            Response::Completed {
                plan,
                step,
                digest,
                next,
            } => {
                let (plan, step) = (plan.to_string(), step.to_string());
                let mut all = fields(&["completed", &plan, &step, digest]);
                all.extend(next.iter().flat_map(Claim::fields));
                all
            }
            Response::LateResultKept {
                plan,
                artifact,
                text,
            } => fields(&["late_result_kept", &plan.to_string(), artifact, text]),
            Response::ProgressRecorded { plan, step, note } => fields(&[
                "progress_recorded",
                &plan.to_string(),
                &step.to_string(),
                note,
            ]),
            Response::ReviewRequested { plan, step, review } => fields(&[
                "review_requested",
                &plan.to_string(),
                &step.to_string(),
                review,
            ]),
            Response::ReviewDecided {
                plan,
                step,
                feedback,
            } => fields(&[
                "review_decided",
                &plan.to_string(),
                &step.to_string(),
                feedback,
            ]),
            Response::Modified { plan, seq } => {
                fields(&["modified", &plan.to_string(), &seq.to_string()])
            }
            Response::Repeated => fields(&["repeated"]),
            Response::NoChange { reason } => fields(&["no_change", reason]),
            Response::Failed {
                kind,
                hint,
                message,
            } => fields(&["failed", kind.as_str(), hint, message]),
        }
    }

    fn parse(fields: &[&str]) -> Option<Self> {
        let owned = |field: &str| field.to_owned();
        let response = match fields {
            ["ready"] => return Some(RecordKind::Ready),
            ["call-submit", digest, claim_next] => {
                let (digest, claim_next) = (owned(digest), !claim_next.is_empty());
                return Some(RecordKind::Call(Call::Submit { digest, claim_next }));
            }
            ["call", call] => return Call::parse(call).map(RecordKind::Call),
            ["created", plan, digest] => {
                let (plan, digest) = (plan.parse().ok()?, owned(digest));
                Response::Created { plan, digest }
            }
            ["claimed", plan, claim @ ..] => {
                let (plan, claim) = (plan.parse().ok()?, Claim::parse(claim)?);
                Response::Claimed { plan, claim }
            }
            ["completed", plan, step, digest, next @ ..] => {
                let (plan, step) = (plan.parse().ok()?, step.parse().ok()?);
                let (digest, next) = (owned(digest), Claim::parse(next));
                Response::Completed {
                    plan,
                    step,
                    digest,
                    next,
                }
            }
            ["late_result_kept", plan, artifact, text] => {
                let (plan, artifact) = (plan.parse().ok()?, owned(artifact));
                Response::LateResultKept {
                    plan,
                    artifact,
                    text: owned(text),
                }
            }
            ["progress_recorded", plan, step, note] => {
                let (plan, step) = (plan.parse().ok()?, step.parse().ok()?);
                Response::ProgressRecorded {
                    plan,
                    step,
                    note: owned(note),
                }
            }
            ["review_requested", plan, step, review] => {
                let (plan, step) = (plan.parse().ok()?, step.parse().ok()?);
                Response::ReviewRequested {
                    plan,
                    step,
                    review: owned(review),
                }
            }
            ["review_decided", plan, step, feedback] => {
                let (plan, step) = (plan.parse().ok()?, step.parse().ok()?);
                Response::ReviewDecided {
                    plan,
                    step,
                    feedback: owned(feedback),
                }
            }
            ["modified", plan, seq] => {
                let (plan, seq) = (plan.parse().ok()?, seq.parse().ok()?);
                Response::Modified { plan, seq }
            }
            ["repeated"] => Response::Repeated,
            ["no_change", reason] => Response::NoChange {
                reason: owned(reason),
            },
            ["failed", kind, hint, message] => Response::Failed {
                kind: FailureKind::parse(kind)?,
                hint: owned(hint),
                message: owned(message),
            },
            _ => return None,
        };
        Some(RecordKind::Response(response))
    }
}

impl Call {
    fn as_str(&self) -> &'static str {
        match self {
            Call::Create => "create",
            Call::Next => "next",
            Call::Submit { .. } => "submit",
            Call::Progress => "progress",
            Call::Review => "review",
            Call::Decide => "decide",
            Call::Modify => "modify",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        let all = [
            Call::Create,
            Call::Next,
            Call::Progress,
            Call::Review,
            Call::Decide,
            Call::Modify,
        ];
        all.into_iter().find(|call| call.as_str() == name)
    }
}

impl FailureKind {
    fn as_str(self) -> &'static str {
        match self {
            FailureKind::Unavailable => "unavailable",
            FailureKind::OutcomeUnknown => "outcome_unknown",
            FailureKind::OtherStoreError => "other_store_error",
            FailureKind::ResponseChanged => "response_changed",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        let all = [
            FailureKind::Unavailable,
            FailureKind::OutcomeUnknown,
            FailureKind::OtherStoreError,
            FailureKind::ResponseChanged,
        ];
        all.into_iter().find(|kind| kind.as_str() == name)
    }
}

impl Claim {
    fn fields(&self) -> Vec<String> {
        let Claim {
            step,
            attempt,
            token,
        } = self;
        fields(&[&step.to_string(), &attempt.to_string(), token])
    }

    fn parse(fields: &[&str]) -> Option<Self> {
        let [step, attempt, token] = fields else {
            return None;
        };
        Some(Self {
            step: step.parse().ok()?,
            attempt: attempt.parse().ok()?,
            token: (*token).to_owned(),
        })
    }
}

fn fields(fields: &[&str]) -> Vec<String> {
    fields.iter().map(|field| (*field).to_owned()).collect()
}
