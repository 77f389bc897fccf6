//! `get_next_step` with `waitMs`: repeats the call when the plan has changed, until a step is
//! available, the plan ends, a review is decided or the time is up.
//!
//! The wait runs in the future of the request, so that a caller that disconnects stops waiting and
//! claims nothing. Each attempt runs like any other call. A client that follows tasks gets a
//! [`TaskedWait`] instead, and every poll of the task is an attempt.

use std::sync::Arc;
use std::time::Duration;

use onward_core::{PlanId, Timestamp};
use onward_engine::Caller;
use onward_engine::context::DEFAULT_CHARS;
use onward_engine::next_step::NextStep;
use onward_engine::task::TaskWait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::{Call, Tool, ToolContext, ToolError, get_next_step, session};

const FIELD: &str = "waitMs";

/// Admits a wait of this duration, or rejects it because too many callers wait. The HTTP server
/// adds it to each request.
#[derive(Clone)]
pub(crate) struct WaitPermit(Arc<dyn Fn(Duration) -> bool + Send + Sync>);

impl WaitPermit {
    pub(crate) fn new(admit: impl Fn(Duration) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(admit))
    }
}

/// Waits for shutdown.
pub(crate) async fn wait_for_shutdown(mut closing: watch::Receiver<bool>) {
    if closing.wait_for(|closing| *closing).await.is_err() {
        // The sender was dropped without a shutdown.
        std::future::pending().await
    }
}

/// Whether a call with these arguments may wait.
pub(crate) fn waits(tool: &Tool, arguments: &Value) -> bool {
    let arguments = arguments.as_object();
    arguments.is_some_and(|arguments| is_requested(tool, arguments))
}

/// [`waits`] with the arguments of an MCP request.
pub(crate) fn is_requested(tool: &Tool, arguments: &Map<String, Value>) -> bool {
    tool.name == get_next_step::NAME && arguments.contains_key(FIELD)
}

/// A wait that a call requests.
pub(super) struct Wait {
    plan: PlanId,
    duration: Duration,
}

impl Wait {
    /// `None` if the call does not wait, or reports an issue instead.
    pub(super) fn requested(call: &Call) -> Option<Self> {
        if !waits(call.tool, &call.arguments) || !call.issues.is_empty() {
            return None;
        }
        let ms = call.arguments.get(FIELD)?.as_u64()?;
        let plan = call.arguments.get("planId")?.as_str()?;
        let duration = Duration::from_millis(ms);
        (!duration.is_zero()).then_some(Self {
            plan: plan.parse().ok()?,
            duration,
        })
    }

    /// Executes the call, and again after changes of the plan. The last response is the result.
    pub(super) async fn run(
        self,
        call: &mut Call,
        context: &ToolContext,
        caller: &Caller,
        permit: Option<&WaitPermit>,
    ) -> Result<Value, ToolError> {
        let deadline = Instant::now() + self.duration;
        let mut watch = context.engine.watch_plan(caller, self.plan)?;
        let mut review = None;
        let mut admitted = permit.is_none();
        loop {
            let response = call.run(context, caller).await?;
            let Some(reason) = Unavailable::from_response(&response) else {
                watch.claimed();
                return Ok(response);
            };
            let now = Instant::now();
            let is_decided = review.is_some() && review != reason.review;
            if is_decided || now >= deadline || *context.closing.borrow() {
                return Ok(response);
            }
            if !admitted {
                admitted = permit.is_none_or(|permit| permit.0(deadline - now));
                if !admitted {
                    return Ok(response);
                }
            }
            review = reason.review;
            drop(response);
            tokio::select! {
                _ = timeout_at(deadline, watch.changed()) => {}
                () = wait_for_shutdown(context.closing.clone()) => {}
            }
            call.waited += now.elapsed();
        }
    }
}

/// The first attempt of a wait that may continue as a task.
pub(crate) enum FirstAttempt {
    /// The call is complete.
    Done(Result<Value, ToolError>),
    /// No step is available yet.
    Waiting(TaskedWait),
}

/// A wait that continues as a task, as stored.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskedWait {
    arguments: Value,
    /// Milliseconds since 1970.
    deadline: i64,
    /// The review that the plan was waiting for.
    review: Option<String>,
}

impl TaskedWait {
    /// Executes the call once.
    pub(crate) async fn begin(call: &Call, context: &ToolContext, caller: &Caller) -> FirstAttempt {
        let response = call.run(context, caller).await;
        let wait = match (&response, Wait::requested(call)) {
            (Ok(response), Some(wait)) => Unavailable::from_response(response).zip(Some(wait)),
            _ => None,
        };
        let Some((reason, wait)) = wait else {
            return FirstAttempt::Done(response);
        };
        let ms = i64::try_from(wait.duration.as_millis()).unwrap_or(i64::MAX);
        // Another process may answer the next poll.
        let arguments = Arc::clone(&call.arguments);
        let arguments = match session::add(context, caller, call.tool, arguments).await {
            Ok(arguments) => arguments,
            Err(error) => return FirstAttempt::Done(Err(error)),
        };
        FirstAttempt::Waiting(Self {
            arguments: Value::clone(&arguments),
            deadline: context.engine.now().as_millis().saturating_add(ms),
            review: reason.review,
        })
    }

    /// The requested step. `None` if the stored arguments are invalid.
    pub(crate) fn target(&self) -> Option<TaskWait> {
        let text = |name: &str| self.arguments.get(name).and_then(Value::as_str);
        let stalled = self.arguments.get("includeStalled");
        Some(TaskWait {
            plan: text("planId")?.parse().ok()?,
            session: super::params::session_id(text("sessionId").map(str::to_owned)),
            include_stalled: stalled.and_then(Value::as_bool).unwrap_or(false),
            labels: self.arguments.get("labels").and_then(|labels| {
                let labels = labels.as_array()?.iter();
                Some(
                    labels
                        .filter_map(Value::as_str)
                        .map(str::to_owned)
                        .collect(),
                )
            }),
        })
    }

    /// The response of the tool, if it ends the wait.
    pub(crate) fn response(
        &self,
        context: &ToolContext,
        plan: PlanId,
        next: &NextStep,
        now: Timestamp,
    ) -> Option<Result<Value, ToolError>> {
        let response = serde_json::to_value(get_next_step::response(context, Some(plan), next));
        let Ok(mut response) = response else {
            return Some(Err(ToolError::internal(get_next_step::NAME)));
        };
        if let Some(reason) = Unavailable::from_response(&response) {
            let is_decided = self.review.is_some() && self.review != reason.review;
            if !is_decided && now.as_millis() < self.deadline {
                return None;
            }
        }
        context.limit(
            &mut response,
            super::max_chars(&self.arguments, DEFAULT_CHARS),
        );
        Some(Ok(response))
    }
}

/// Why no step is available.
struct Unavailable {
    /// The review that the plan is waiting for.
    review: Option<String>,
}

impl Unavailable {
    /// `None` if waiting would not change the response.
    fn from_response(response: &Value) -> Option<Self> {
        match response.get("status")?.as_str()? {
            "awaiting_review" => {
                let review = response.pointer("/review/reviewId")?.as_str()?;
                Some(Self {
                    review: Some(review.to_owned()),
                })
            }
            "no_pending_steps" | "budget_exhausted" => Some(Self { review: None }),
            _ => None,
        }
    }
}
