//! The rules of Onward: what a plan may do, and how to tell that work has stopped.
//!
//! Everything here is a function of its arguments. There is no clock (`now` is always given), no
//! randomness (ids and tokens come with the command), no IO, and nothing to wait for. So the crate is
//! usable on its own, in any program that runs agents, whatever it stores its plans in.
//!
//! # Is anybody still working on this?
//!
//! The detector for steps needs five fields of each of your steps, under ids of your own. It reports
//! and changes nothing. See [`stall`].
//!
//! ```
//! use onward_core::{
//!     DEFAULT_STALL_THRESHOLD, StepStatus, StepTimestamp, Timestamp, detect_stalled_steps,
//! };
//!
//! let row = |id: u64, started: &str, progress: Option<&str>| StepTimestamp {
//!     id,
//!     status: StepStatus::InProgress,
//!     started_at: started.parse().ok(),
//!     updated_at: started.parse().unwrap(),
//!     last_progress_at: progress.and_then(|at| at.parse().ok()),
//! };
//! let rows = [
//!     row(41, "2026-07-28T09:00:00Z", None),
//!     row(42, "2026-07-28T09:00:00Z", Some("2026-07-28T09:29:00Z")),
//! ];
//! let now: Timestamp = "2026-07-28T09:45:00Z".parse()?;
//!
//! assert_eq!(detect_stalled_steps(&rows, now, DEFAULT_STALL_THRESHOLD), [41]);
//! # Ok::<(), onward_core::time::NotATime>(())
//! ```
//!
//! # A whole plan in memory
//!
//! Deciding is one function: a plan, a [`Command`] and `now` in, [`Event`]s or a [`Refusal`] out.
//! Doing is yours: keep the events somewhere safe, then apply them.
//!
//! ```
//! use std::sync::Arc;
//! use onward_core::command::{ActionSpec, BranchSpec, CreatePlan, StartNext, StepRef, StepSpec, SubmitResult};
//! use onward_core::id::{BranchId, ClaimToken, PlanId, StepId};
//! use onward_core::step::StepResult;
//! use onward_core::{Event, Plan, PlanStatus, StepType, Timestamp, decide};
//!
//! // Ids and tokens are yours to make: random ones in earnest, counted ones here.
//! let [search, dig, write] = [1, 2, 3].map(StepId::from_u128);
//! let mut question = CreatePlan::new(
//!     PlanId::from_u128(1),
//!     "Tides",
//!     "Why are there two tides a day?",
//!     vec![
//!         StepSpec::new(search, StepType::Search, "Find three sources."),
//!         StepSpec::new(dig, StepType::Analyze, "Dig deeper."),
//!         StepSpec::new(write, StepType::Synthesize, "Write the answer."),
//!     ],
//! );
//! question.branches.push(BranchSpec {
//!     id: BranchId::from_u128(1),
//!     after_order: 1,
//!     condition: "confidence >= 0.8".to_owned(),
//!     action: ActionSpec::SkipTo(StepRef::Order(3)),
//! });
//!
//! let mut now = Timestamp::from_millis(1_790_000_000_000);
//! let mut trail: Vec<(Event, Timestamp)> = Vec::new();
//! for event in decide::create::decide(&question)? {
//!     trail.push((event, now));
//! }
//! let mut plan = Plan::replay(trail.iter().map(|(event, at)| (event, *at)))?;
//!
//! let mut claims = 0;
//! while !plan.head().status().is_terminal() {
//!     // Take the next step on …
//!     claims += 1;
//!     let token = ClaimToken::new(format!("claim {claims}"));
//!     let next = StartNext { token: token.clone(), session: None, include_stalled: false };
//!     let events = decide(&plan, &next.into(), now)?;
//!     let Some(step) = decide::start_next::handed_out(&events) else { break };
//!     plan.apply_all(&events, now)?;
//!     trail.extend(events.into_iter().map(|event| (event, now)));
//!
//!     // … work on it, and hand in what came out.
//!     now = Timestamp::from_millis(now.as_millis() + 60_000);
//!     let result = StepResult { confidence: Some(0.9), ..StepResult::of_summary("The Moon, twice.") };
//!     let submit = SubmitResult {
//!         step,
//!         result: Arc::new(result),
//!         token: Some(token),
//!         fresh_token: ClaimToken::new("unused"),
//!         session: None,
//!     };
//!     let events = decide(&plan, &submit.into(), now)?;
//!     plan.apply_all(&events, now)?;
//!     trail.extend(events.into_iter().map(|event| (event, now)));
//! }
//!
//! assert_eq!(plan.head().status(), PlanStatus::Completed);
//! // The branch was taken: nobody dug deeper.
//! assert_eq!(plan.step(dig).unwrap().status(), onward_core::StepStatus::Skipped);
//! // The plan is what its trail says.
//! assert_eq!(Plan::replay(trail.iter().map(|(event, at)| (event, *at)))?, plan);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Facts, not worlds
//!
//! A program that stores its plans in a database need not hold them in memory. Each verb in
//! [`decide`](mod@decide) says what it looks at ([`decide::submit::Facts`]: the plan's head, the step,
//! its branches), and that is all there is to load. The cost does not grow with the steps that a
//! command does not touch.
//!
//! # Where things are
//!
//! | module | what |
//! |---|---|
//! | [`plan`], [`step`], [`branch`] | what a plan is; each state with its data; the tables of moves |
//! | [`condition`] | what a branch looks at: CEL, with bounds |
//! | [`command`], [`event`], [`refusal`] | what can be asked, what happened, why it was not done |
//! | [`decide`](mod@decide), [`apply`] | commands to events; events to state |
//! | [`progress`], [`stall`], [`watcher`] | how far it is; whether it stopped; whether the watcher slept |
//! | [`finding`] | what people are told of when nobody looks |
//! | [`skill`] | executions of agents' skills, which may be linked to a plan |
//! | [`turn`] | whether an agent gets anywhere, or goes round in circles |
//! | [`call`] | whether a tool call will ever answer; what is said where it will not |
//! | [`transcript`] | conversations with calls that were never answered, put right |
//! | [`search`] | what makes a text findable: its chunks and words |
//! | [`policy`], [`role`] | what an owner sets; who may do what |
//! | [`id`], [`time`] | names and instants |

pub mod apply;
pub mod branch;
pub mod call;
pub mod command;
pub mod condition;
pub mod decide;
pub mod event;
pub mod finding;
pub mod id;
pub mod plan;
pub mod policy;
pub mod progress;
pub mod refusal;
pub mod role;
pub mod search;
pub mod skill;
pub mod stall;
pub mod step;
pub mod time;
pub mod transcript;
pub mod turn;
pub mod watcher;

pub use apply::Plan;
pub use call::{CallPolicy, DEFAULT_CALL_TIMEOUT, STALE_GRACE};
pub use command::Command;
pub use decide::decide;
pub use event::Event;
pub use id::{PlanId, StepId};
pub use plan::{PlanHead, PlanStatus};
pub use policy::DEFAULT_STALL_THRESHOLD;
pub use progress::{Counts, derive_plan_status};
pub use refusal::{Code, Refusal};
pub use role::Role;
pub use stall::{Stall, StepTimestamp, detect_stalled_steps, is_plan_stalled, next_stall_at};
pub use step::{Step, StepStatus, StepType};
pub use time::Timestamp;
pub use turn::{ProgressDetector, TurnPolicy};
