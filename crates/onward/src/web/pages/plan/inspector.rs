//! One step in detail, next to the rail and on its own page: holder, attempt, last update, note,
//! dependencies, texts, earlier attempts, late results and actions.

use onward_core::id::SessionId;
use onward_core::role::Permission;
use onward_core::step::{NewStep, ReviewBy, StepResult, StepState};
use onward_core::{PlanHead, PlanId, StepId, StepStatus, StepType, Timestamp};
use onward_engine::Error;
use onward_engine::history::{Attempt, AttemptEnd, LateResult};

use super::{PlanActions, note_text};
use crate::output::budget::tokens_text;
use crate::output::{format, trail};
use crate::web::pages::agent_name::{agent_name, directory};
use crate::web::pages::evidence::{EvidenceRow, GatesView, reviewer};
use crate::web::pages::format::{
    Age, Badge, Clock, PlanTime, RelativeTime, ShortId, multiline, one_line,
};
use crate::web::pages::markdown_html::MarkdownHtml;
use crate::web::pages::sessions::session_url;
use crate::web::pages::who::Who;
use crate::web::pages::{PageError, Visit};

const MAX_CHARS: usize = 100_000;
/// Milliseconds in a minute.
pub(in crate::web::pages) const MINUTE_MS: f64 = 60_000.0;
/// Maximum number of steps that depend on this one.
const MAX_BLOCKS: u32 = 1_000;

/// A step in detail.
pub(in crate::web::pages) struct Inspector {
    pub(in crate::web::pages) plan: String,
    pub(in crate::web::pages) plan_name: String,
    pub(in crate::web::pages) id: String,
    pub(in crate::web::pages) order: u32,
    pub(in crate::web::pages) name: String,
    pub(in crate::web::pages) kind: &'static str,
    pub(in crate::web::pages) badge: Badge,
    pub(in crate::web::pages) is_stuck: bool,
    pub(in crate::web::pages) limit: String,
    pub(in crate::web::pages) silent_since: Option<(Clock, Age)>,
    pub(in crate::web::pages) attempt: u32,
    pub(in crate::web::pages) max_attempts: u32,
    /// The tokens; "unknown" if no count is known. `None` before the first claim.
    pub(in crate::web::pages) tokens: Option<String>,
    pub(in crate::web::pages) priority: u8,
    pub(in crate::web::pages) labels: String,
    pub(in crate::web::pages) holder: Option<String>,
    /// The holding session, with a link if it has a page.
    pub(in crate::web::pages) session: Option<ShortId>,
    pub(in crate::web::pages) started: Option<RelativeTime>,
    pub(in crate::web::pages) updated: Option<RelativeTime>,
    pub(in crate::web::pages) ended: Option<RelativeTime>,
    pub(in crate::web::pages) note: Option<String>,
    pub(in crate::web::pages) depends_on: Vec<StepLink>,
    pub(in crate::web::pages) blocks: Vec<StepLink>,
    pub(in crate::web::pages) instructions: MarkdownHtml,
    pub(in crate::web::pages) instructions_source: String,
    /// The other fields, which can be changed while the step is pending.
    pub(in crate::web::pages) edit: Option<EditFields>,
    pub(in crate::web::pages) summary: Option<MarkdownHtml>,
    pub(in crate::web::pages) data: Option<String>,
    pub(in crate::web::pages) report: Option<String>,
    pub(in crate::web::pages) confidence: Option<f64>,
    pub(in crate::web::pages) gates: GatesView,
    pub(in crate::web::pages) evidence: Vec<EvidenceRow>,
    pub(in crate::web::pages) reason: Option<String>,
    pub(in crate::web::pages) review: Option<String>,
    /// Attempts before the current one, newest first.
    pub(in crate::web::pages) earlier_attempts: Vec<EarlierAttempt>,
    /// Rejected results, newest first.
    pub(in crate::web::pages) late_results: Vec<LateResultLink>,
    /// The caller may not modify the plan: no buttons.
    pub(in crate::web::pages) denied: Option<String>,
    /// The plan's state allows no modification: all buttons are disabled.
    pub(in crate::web::pages) blocked: Option<String>,
    pub(in crate::web::pages) release_blocked: Option<String>,
    pub(in crate::web::pages) fail_blocked: Option<String>,
    pub(in crate::web::pages) move_blocked: Option<String>,
    pub(in crate::web::pages) redo_blocked: Option<String>,
    /// Whether the step can be skipped: it is pending, or it has failed.
    pub(in crate::web::pages) can_skip: bool,
    /// Whether the step waits for failed steps.
    pub(in crate::web::pages) waits_for_failed: bool,
    /// Whether the plan can be forked from this step: it has ended.
    pub(in crate::web::pages) can_fork: bool,
    /// The step that this one redoes, and the step that redoes this one.
    pub(in crate::web::pages) supersedes: Option<StepLink>,
    pub(in crate::web::pages) superseded_by: Option<StepLink>,
    pub(in crate::web::pages) total: u32,
}

/// The values of a pending step in the form that changes it.
pub(in crate::web::pages) struct EditFields {
    pub(in crate::web::pages) title: String,
    pub(in crate::web::pages) types: [(&'static str, bool); StepType::ALL.len()],
    /// Set with the links to these steps.
    pub(in crate::web::pages) depends_on: String,
    pub(in crate::web::pages) minutes: Option<f64>,
    pub(in crate::web::pages) criteria: String,
    pub(in crate::web::pages) schema: String,
    pub(in crate::web::pages) reviewers: [(&'static str, &'static str, bool); 3],
    pub(in crate::web::pages) labels: String,
    pub(in crate::web::pages) priority: u8,
}

impl EditFields {
    fn new(spec: &NewStep) -> Self {
        let gates = spec.gates.as_deref();
        let review_by = gates.and_then(|gates| gates.review_by);
        let schema = gates.and_then(|gates| gates.result_schema.as_ref());
        let option = |by: Option<ReviewBy>, label| {
            let name = by.map_or("", ReviewBy::as_str);
            (name, label, by == review_by)
        };
        Self {
            title: spec.title.clone().unwrap_or_default(),
            types: StepType::ALL.map(|kind| (kind.as_str(), kind == spec.step_type)),
            depends_on: String::new(),
            minutes: (spec.stall_threshold).map(|span| span.as_secs_f64() * 1_000.0 / MINUTE_MS),
            criteria: gates.map_or_else(String::new, |gates| gates.acceptance_criteria.join("\n")),
            schema: schema.map_or_else(String::new, |schema| format::pretty_json(&schema.parse())),
            reviewers: [
                option(None, "no review"),
                option(Some(ReviewBy::Person), reviewer(ReviewBy::Person)),
                option(
                    Some(ReviewBy::OtherSession),
                    reviewer(ReviewBy::OtherSession),
                ),
            ],
            labels: spec.labels.join(", "),
            priority: spec.priority,
        }
    }
}

/// An attempt that ended.
pub(in crate::web::pages) struct EarlierAttempt {
    pub(in crate::web::pages) number: u32,
    pub(in crate::web::pages) author: String,
    pub(in crate::web::pages) started: Clock,
    pub(in crate::web::pages) outcome: &'static str,
    pub(in crate::web::pages) duration: String,
}

/// A rejected result, which is an artifact.
pub(in crate::web::pages) struct LateResultLink {
    pub(in crate::web::pages) artifact: ShortId,
    pub(in crate::web::pages) rejection: String,
    pub(in crate::web::pages) at: RelativeTime,
}

/// Another step.
pub(in crate::web::pages) struct StepLink {
    pub(in crate::web::pages) id: String,
    pub(in crate::web::pages) order: u32,
    pub(in crate::web::pages) word: String,
}

impl Inspector {
    /// `None` if the step belongs to another plan.
    pub(in crate::web::pages) async fn load(
        visit: &Visit,
        plan: PlanId,
        id: StepId,
    ) -> Result<Option<Self>, PageError> {
        let engine = &visit.site.engine;
        let (sheet, step) = match engine.step(&visit.caller, id).await {
            Ok(found) => found,
            Err(Error::StepNotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if sheet.head.id != plan {
            return Ok(None);
        }
        let now = engine.now();
        let spec = &step.spec;
        let actions = PlanActions::new(visit, &sheet.head);
        let (status, total) = (step.status(), sheet.head.counts.last_order());
        let page = engine
            .list_steps(&visit.caller, plan, None, step.order - 1, 1)
            .await?;
        let line = page.steps.into_iter().find(|line| line.id == id);
        let stalls_at = line.as_ref().and_then(|line| line.stalls_at);
        let badge = match step.superseded_by {
            Some(_) => Badge::SUPERSEDED,
            None => Badge::step_at(status, stalls_at, PlanTime::new(&sheet.head, now)),
        };
        let is_stuck = badge.class() == "stuck";
        let last = step.timestamp().reference();
        let work = step.work();
        let claim = work.map(|work| &work.claim);
        let session = claim.and_then(|claim| claim.session.as_ref());
        let known = match session {
            Some(session) => engine
                .find_session(&visit.caller, session.as_str())
                .await
                .ok(),
            None => None,
        };
        let holder = known.as_ref().map(|session| {
            let agent = agent_name(&session.agent);
            match session.directory.as_deref().map(directory) {
                Some(directory) => format!("{agent} in {directory}"),
                None => agent,
            }
        });
        let is_open = matches!(status, StepStatus::InProgress | StepStatus::AwaitingInput);
        let owner = || Who::new(&sheet.owner).short();
        let name = spec.title.as_deref().unwrap_or(spec.step_type.as_str());
        let unless = |allowed: bool, reason: &str| (!allowed).then(|| reason.to_owned());
        let threshold = onward_core::policy::stall_threshold(
            None,
            spec.stall_threshold,
            sheet.head.stall_threshold,
        );
        let tokens = engine.step_tokens(&visit.caller, id).await?;
        let mut inspector = Self {
            plan: plan.to_string(),
            plan_name: format::sanitize_line(&sheet.brief.name),
            id: id.to_string(),
            order: step.order,
            name: one_line(name, 200),
            kind: spec.step_type.as_str(),
            badge,
            is_stuck,
            limit: format::duration(threshold),
            silent_since: is_stuck.then(|| (Clock::new(last, now), Age::new(last, now))),
            attempt: step.attempt(),
            max_attempts: spec.max_attempts,
            tokens: (step.work().is_some() || tokens.is_some()).then(|| tokens_text(tokens)),
            priority: spec.priority,
            labels: one_line(&spec.labels.join(", "), 1_000),
            holder: is_open.then(|| holder.unwrap_or_else(owner)),
            session: session.map(|id| {
                let short = ShortId::new(id.as_str());
                match known {
                    Some(_) => short.linked(session_url(id.as_str())),
                    None => short,
                }
            }),
            started: work.map(|work| RelativeTime::new(work.started_at, now)),
            updated: is_open.then(|| RelativeTime::new(last, now)),
            ended: None,
            note: line
                .and_then(|line| line.note)
                .filter(|_| is_open)
                .map(|note| note_text(&note)),
            depends_on: Vec::new(),
            blocks: Vec::new(),
            instructions: MarkdownHtml::render(&spec.instructions, MAX_CHARS),
            instructions_source: spec.instructions.clone(),
            edit: (status == StepStatus::Pending).then(|| EditFields::new(spec)),
            summary: None,
            data: None,
            report: None,
            confidence: None,
            gates: GatesView::new(spec.gates.as_deref()),
            evidence: Vec::new(),
            reason: None,
            review: None,
            earlier_attempts: Vec::new(),
            late_results: Vec::new(),
            denied: actions.modify_denied,
            blocked: actions.modify_blocked,
            release_blocked: unless(
                status == StepStatus::InProgress,
                "Only a step in progress can be released.",
            ),
            fail_blocked: unless(
                matches!(status, StepStatus::InProgress | StepStatus::Pending),
                "Only a queued step or a step in progress can be failed.",
            ),
            move_blocked: unless(total > 1, "The plan has only one step."),
            redo_blocked: unless(
                status.is_terminal() && step.superseded_by.is_none(),
                "Only a step that has ended and was not redone can be redone.",
            ),
            can_skip: matches!(status, StepStatus::Pending | StepStatus::Failed)
                && step.superseded_by.is_none(),
            waits_for_failed: false,
            can_fork: sheet.head.ended_at().is_some()
                && visit.denial(Permission::CreatePlan).is_none(),
            supersedes: None,
            superseded_by: None,
            total,
        };
        inspector.add_state(&step.state, now);
        inspector.add_neighbours(visit, &sheet.head, &step).await?;
        let history = engine.step_history(&visit.caller, plan, id).await?;
        // The last attempt is the state of the step, unless the step was released.
        let is_released = |last: &Attempt| matches!(last.ended, Some((_, AttemptEnd::Released)));
        let skipped = usize::from(!history.attempts.last().is_some_and(is_released));
        let earlier = history.attempts.iter().rev().skip(skipped);
        inspector.earlier_attempts = earlier
            .filter_map(|attempt| EarlierAttempt::new(attempt, now))
            .collect();
        let late = history.late_results.iter().rev();
        inspector.late_results = late.map(|late| LateResultLink::new(late, now)).collect();
        Ok(Some(inspector))
    }

    fn add_state(&mut self, state: &StepState, now: Timestamp) {
        let when = |at| Some(RelativeTime::new(at, now));
        match state {
            StepState::Pending { .. } | StepState::InProgress(_) => {}
            StepState::AwaitingInput { review, .. } => {
                self.review = Some(review.id.to_string());
                if let Some(result) = &review.result {
                    self.add_result(result);
                }
            }
            StepState::Completed {
                started_at,
                ended_at,
                result,
                ..
            } => {
                (self.started, self.ended) = (when(*started_at), when(*ended_at));
                self.add_result(result);
            }
            StepState::Skipped { ended_at, .. } => self.ended = when(*ended_at),
            StepState::Failed {
                reason, ended_at, ..
            } => {
                self.ended = when(*ended_at);
                self.reason = Some(multiline(&reason.to_string(), MAX_CHARS));
            }
        }
    }

    fn add_result(&mut self, result: &StepResult) {
        self.summary = Some(MarkdownHtml::render(&result.summary, MAX_CHARS));
        let json =
            |json: &onward_core::Json| multiline(&format::pretty_json(&json.parse()), MAX_CHARS);
        self.data = result.data.as_ref().map(json);
        self.report = result.report.as_ref().map(json);
        self.confidence = result.confidence;
        self.evidence = EvidenceRow::list(&result.evidence);
    }

    /// The steps that this one depends on, and those that depend on it.
    async fn add_neighbours(
        &mut self,
        visit: &Visit,
        head: &PlanHead,
        step: &onward_core::Step,
    ) -> Result<(), PageError> {
        let engine = &visit.site.engine;
        let now = PlanTime::new(head, engine.now());
        let states = engine.step_states(&visit.caller, head.id).await?;
        let link = |mark: &onward_engine::StepMark| StepLink {
            id: mark.id.to_string(),
            order: mark.order,
            word: Badge::mark(mark, now).class().replace('_', " "),
        };
        let needed = states
            .iter()
            .filter(|mark| step.spec.depends_on.contains(&mark.id));
        let is_unmet = |mark: &&onward_engine::StepMark| {
            mark.status == StepStatus::Failed && !step.spec.is_met_by(mark.status)
        };
        let waits = needed.clone().any(|mark| is_unmet(&mark));
        self.waits_for_failed = waits && step.status() == StepStatus::Pending;
        self.depends_on = needed.map(link).collect();
        if let Some(edit) = &mut self.edit {
            let orders = self.depends_on.iter().map(|link| link.order.to_string());
            edit.depends_on = orders.collect::<Vec<_>>().join(", ");
        }
        let find = |id: Option<StepId>| states.iter().find(|mark| Some(mark.id) == id).map(link);
        self.supersedes = find(step.spec.supersedes);
        self.superseded_by = find(step.superseded_by);
        let later = engine
            .list_steps(&visit.caller, head.id, None, step.order, MAX_BLOCKS)
            .await?;
        let waits = |line: &&onward_engine::StepLine| {
            let orders = later.depends_on.get(&line.id);
            orders.is_some_and(|orders| orders.contains(&step.order))
        };
        let blocked: Vec<StepId> = later
            .steps
            .iter()
            .filter(waits)
            .map(|line| line.id)
            .collect();
        let blocked = states.iter().filter(|mark| blocked.contains(&mark.id));
        self.blocks = blocked.map(link).collect();
        Ok(())
    }

    pub(in crate::web::pages) fn title(&self) -> String {
        format!("Step {}: {}", self.order, self.name)
    }
}

impl EarlierAttempt {
    /// `None` if the attempt continues.
    fn new(attempt: &Attempt, now: Timestamp) -> Option<Self> {
        let (ended_at, end) = attempt.ended?;
        let session = attempt.session.as_ref().map(SessionId::as_str);
        Some(Self {
            number: attempt.number,
            author: one_line(&trail::author(&attempt.author, session), 60),
            started: Clock::new(attempt.started_at, now),
            outcome: match end {
                AttemptEnd::Completed => "completed",
                AttemptEnd::Failed => "failed",
                AttemptEnd::Released => "released",
            },
            duration: format::duration(ended_at.since(attempt.started_at)),
        })
    }
}

impl LateResultLink {
    fn new(late: &LateResult, now: Timestamp) -> Self {
        Self {
            artifact: ShortId::new(late.artifact).linked(format!("/artifacts/{}", late.artifact)),
            rejection: one_line(&late.rejection.replace('_', " "), 60),
            at: RelativeTime::new(late.at, now),
        }
    }
}
