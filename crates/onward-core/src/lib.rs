//! The rules of Onward: plans, steps and branches, and the detectors for stalled work.
//!
//! Every function depends only on its arguments. There is no clock (`now` is a parameter), no
//! randomness (ids and tokens come with the command), no IO and no async code. Any program that
//! runs agents can use this crate, with any storage.
//!
//! # Detecting stalled steps
//!
//! The step detector needs five fields of each step and works with any id type. It reports stalled
//! steps and changes nothing. See [`stall`].
//!
//! ```
//! use onward_core::{
//!     DEFAULT_STALL_THRESHOLD, StepStatus, StepTimestamp, Timestamp, detect_stalled_steps,
//! };
//!
//! let step = |id: u64, started: &str, progress: Option<&str>| StepTimestamp {
//!     id,
//!     status: StepStatus::InProgress,
//!     started_at: started.parse().ok(),
//!     updated_at: started.parse().unwrap(),
//!     last_progress_at: progress.and_then(|at| at.parse().ok()),
//! };
//! let steps = [
//!     step(41, "2026-07-28T09:00:00Z", None),
//!     step(42, "2026-07-28T09:00:00Z", Some("2026-07-28T09:29:00Z")),
//! ];
//! let now: Timestamp = "2026-07-28T09:45:00Z".parse()?;
//!
//! assert_eq!(detect_stalled_steps(&steps, now, DEFAULT_STALL_THRESHOLD), [41]);
//! # Ok::<(), onward_core::time::InvalidTimestamp>(())
//! ```
//!
//! # A whole plan in memory
//!
//! [`decide`](fn@decide) takes a plan, a [`Command`] and `now`, and returns [`Event`]s or a
//! [`Refusal`]. The caller stores the events durably and then applies them.
//!
//! ```
//! use std::sync::Arc;
//! use onward_core::command::{
//!     ActionSpec, BranchSpec, CreatePlan, StartNext, StepRef, StepSpec, SubmitResult,
//! };
//! use onward_core::id::{BranchId, ClaimToken, PlanId, StepId};
//! use onward_core::step::StepResult;
//! use onward_core::{Event, Plan, PlanStatus, StepType, Timestamp, decide};
//!
//! // The caller creates ids and tokens: random in production, sequential here.
//! let [search, research, write] = [1, 2, 3].map(StepId::from_u128);
//! let mut create = CreatePlan::new(
//!     PlanId::from_u128(1),
//!     "Tides",
//!     "Why are there two tides a day?",
//!     vec![
//!         StepSpec::new(search, StepType::Search, "Find three sources."),
//!         StepSpec::new(research, StepType::Analyze, "Research the open points."),
//!         StepSpec::new(write, StepType::Synthesize, "Write the answer."),
//!     ],
//! );
//! create.branches.push(BranchSpec {
//!     id: BranchId::from_u128(1),
//!     after_order: 1,
//!     condition: "confidence >= 0.8".to_owned(),
//!     action: ActionSpec::SkipTo(StepRef::Order(3)),
//! });
//!
//! let mut now = Timestamp::from_millis(1_790_000_000_000);
//! let mut audit_trail: Vec<(Event, Timestamp)> = Vec::new();
//! for event in decide::create::decide(&create)? {
//!     audit_trail.push((event, now));
//! }
//! let mut plan = Plan::replay(audit_trail.iter().map(|(event, at)| (event, *at)))?;
//!
//! let mut claims = 0;
//! while !plan.head().status().is_terminal() {
//!     // Claim the next step …
//!     claims += 1;
//!     let token = ClaimToken::new(format!("claim {claims}"));
//!     let next = StartNext {
//!         token: token.clone(),
//!         session: None,
//!         include_stalled: false,
//!         labels: None,
//!     };
//!     let events = decide(&plan, &next.into(), now)?;
//!     let Some(step) = decide::start_next::assigned_step(&events) else { break };
//!     plan.apply_all(&events, now)?;
//!     audit_trail.extend(events.into_iter().map(|event| (event, now)));
//!
//!     // … work on it and submit the result.
//!     now = Timestamp::from_millis(now.as_millis() + 60_000);
//!     let result = StepResult {
//!         confidence: Some(0.9),
//!         ..StepResult::from_summary("The Moon causes both.")
//!     };
//!     let submit = SubmitResult {
//!         step,
//!         result: Arc::new(result),
//!         token: Some(token),
//!         fresh_token: ClaimToken::new("unused"),
//!         review: onward_core::id::ReviewId::from_u128(7_000),
//!         session: None,
//!     };
//!     let events = decide(&plan, &submit.into(), now)?;
//!     plan.apply_all(&events, now)?;
//!     audit_trail.extend(events.into_iter().map(|event| (event, now)));
//! }
//!
//! assert_eq!(plan.head().status(), PlanStatus::Completed);
//! // The branch skipped the step.
//! assert_eq!(plan.step(research).unwrap().status(), onward_core::StepStatus::Skipped);
//! // Replaying the audit trail gives the same plan.
//! assert_eq!(Plan::replay(audit_trail.iter().map(|(event, at)| (event, *at)))?, plan);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Facts instead of whole plans
//!
//! A program that stores plans in a database does not have to load them completely. Each function in
//! [`decide`](mod@decide) takes only the facts that it needs ([`decide::StepFacts`]: the plan's
//! head, the step, its branches), and [`Transition`](transition::Transition) contains the changed
//! rows. The cost does not depend on the number of steps that a command does not touch.
//!
//! # Modules
//!
//! | module | content |
//! |---|---|
//! | [`plan`], [`step`], [`branch`] | plans, steps, branches; transition tables |
//! | [`condition`] | branch conditions: CEL with resource limits |
//! | [`schema`] | JSON Schema with resource limits |
//! | [`command`], [`event`], [`refusal`] | requests, changes, reasons for rejection |
//! | [`decide`](mod@decide), [`apply`], [`transition`] | commands to events; events to state |
//! | [`progress`], [`stall`], [`watcher`] | progress, stalls, sleep detection |
//! | [`budget`] | limits on steps, attempts, time and tokens |
//! | [`finding`] | notifications about plans |
//! | [`skill`] | executions of agent skills, optionally linked to a plan |
//! | [`turn`] | loop detection in agent turns |
//! | [`call`] | tool calls that will not return; messages about them |
//! | [`capture`] | an agent's own task list, mirrored into a plan |
//! | [`transcript`] | repair of conversations with unanswered tool calls |
//! | [`search`] | chunking, tokenization, embeddings and snippets |
//! | [`usage`] | token counts of model responses |
//! | [`policy`], [`role`] | settings and limits; permissions |
//! | [`id`], [`time`], [`json`] | ids, timestamps, JSON as text |

pub mod apply;
pub mod attention;
pub mod branch;
pub mod budget;
pub mod call;
pub mod capture;
pub mod command;
pub mod condition;
pub mod decide;
pub mod event;
pub mod finding;
pub mod id;
pub mod json;
pub mod next_check;
pub mod plan;
mod plan_status;
pub mod policy;
pub mod progress;
pub mod refusal;
pub mod role;
pub mod routing;
pub mod schema;
pub mod search;
pub mod secret;
pub mod session;
pub mod skill;
pub mod stall;
pub mod step;
pub mod time;
pub mod transcript;
pub mod transition;
pub mod turn;
pub mod usage;
pub mod watcher;

pub use apply::Plan;
pub use call::{CallPolicy, DEFAULT_CALL_TIMEOUT, STALE_GRACE};
pub use command::Command;
pub use decide::decide;
pub use event::Event;
pub use id::{PlanId, StepId};
pub use json::Json;
pub use plan::{PlanHead, PlanStatus};
pub use policy::DEFAULT_STALL_THRESHOLD;
pub use progress::{Counts, derive_plan_status};
pub use refusal::{Code, Refusal};
pub use role::Role;
pub use stall::{Stall, StepTimestamp, detect_stalled_steps, is_plan_stalled, next_stall_at};
pub use step::{Step, StepStatus, StepType};
pub use time::Timestamp;
pub use turn::{ProgressDetector, TurnPolicy};
