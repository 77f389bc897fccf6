//! Converts an event to the mirror of its details. The counterpart is `decode.rs`.
//!
//! `from` and `to` are present whenever a step or the plan changes its status. An event that changes
//! both has those of the step; `plan_status_changed` follows it.

use std::borrow::Cow;

use onward_core::branch::Effect;
use onward_core::event::{Change, Created, Decision, ReviewAction};
use onward_core::id::{BranchId, ReviewId, SessionId, SkillExecutionId};
use onward_core::plan::Origin;
use onward_core::routing::Routing;
use onward_core::step::{Claim, FailReason, ReviewScope, SkipCause, StepResult};
use onward_core::{Event, Json, PlanStatus, StepStatus};

use super::details::Details;
use super::gates;
use super::part::{
    BranchJson, ForkedFromJson, NewStepJson, NoEffectJson, each, some_labels, unless_default,
};
use super::review;
use super::scalar::{Millis, Priority, Text, texts};

const PENDING: &str = StepStatus::Pending.as_str();
const IN_PROGRESS: &str = StepStatus::InProgress.as_str();
const AWAITING_INPUT: &str = StepStatus::AwaitingInput.as_str();
const EXECUTING: &str = PlanStatus::Executing.as_str();
const STALLED: &str = PlanStatus::Stalled.as_str();

impl<'e> From<&'e Event> for Details<'e, &'e str, &'e Json> {
    fn from(event: &'e Event) -> Self {
        let mut details = Self {
            action: event.action(),
            ..Self::default()
        };
        details.add_event(event);
        details
    }
}

impl<'e> Details<'e, &'e str, &'e Json> {
    fn add_event(&mut self, event: &'e Event) {
        match event {
            Event::PlanModified { change, rationale } => {
                self.rationale = rationale.as_deref();
                self.add_change(change);
            }
            Event::StepStarted { claim, .. } => self.add_claim(claim),
            Event::StepCompleted {
                from,
                result,
                verdicts,
                session,
                ..
            } => {
                self.add_result(result);
                self.branches = Some(each(verdicts));
                self.add_session(session.as_ref());
                self.add_move(from.as_str(), StepStatus::Completed.as_str());
            }
            Event::StepFailed { from, reason, .. } => self.add_failure(*from, reason),
            Event::StepSkipped { from, by, .. } => self.add_skip(*from, *by),
            Event::StepRequeued {
                attempt, reason, ..
            } => {
                self.attempt = Some(*attempt);
                self.add_move(reason.previous_status().as_str(), PENDING);
            }
            Event::StepProgressed {
                note,
                percent,
                session,
                ..
            } => {
                self.note = note.as_deref();
                self.percent = *percent;
                self.add_session(session.as_ref());
            }
            Event::FeedbackDelivered { session, .. } | Event::StepOrphaned { session, .. } => {
                self.add_session(session.as_ref());
            }
            Event::BranchTaken { branch, effect, .. } => self.add_effect(*branch, effect),
            Event::UserReviewed { review, action, .. } => self.add_review(*review, action),
            Event::SessionResumed { session } => self.add_session(Some(session)),
            Event::SkillStarted { execution, skill } => self.add_skill(*execution, skill, None),
            Event::SkillCompleted {
                execution,
                skill,
                error,
            } => self.add_skill(*execution, skill, error.as_deref()),
            Event::BudgetExhausted { exhausted } => {
                self.exhausted = Some((*exhausted).into());
            }
            Event::PlanStalled { stalls } => {
                self.stalls = Some(each(stalls));
                self.add_move(EXECUTING, STALLED);
            }
            Event::PlanResumed { .. } => self.add_move(STALLED, EXECUTING),
            Event::PlanCompleted => self.add_move(EXECUTING, PlanStatus::Completed.as_str()),
            Event::PlanFailed { from, reason } => {
                self.kind = Some(reason.kind());
                self.reason = reason.text().map(Cow::from);
                self.add_move(from.as_str(), PlanStatus::Failed.as_str());
            }
            Event::PlanStatusChanged { from, to } => self.add_move(from.as_str(), to.as_str()),
            Event::LateResultKept {
                artifact,
                rejection,
                attempt,
                ..
            } => {
                self.artifact_id = Some(Text(*artifact));
                self.refused = Some(rejection.as_str());
                self.attempt = *attempt;
            }
        }
    }

    fn add_move(&mut self, from: &'e str, to: &'e str) {
        (self.from, self.to) = (Some(from), Some(to));
    }

    fn add_session(&mut self, session: Option<&'e SessionId>) {
        self.session_id = session.map(SessionId::as_str);
    }

    fn add_change(&mut self, change: &'e Change) {
        match change {
            Change::Created(plan) => self.add_plan(plan),
            Change::StepsAdded { after, steps } => {
                self.insert_after_order = Some(*after);
                self.steps = Some(each(&**steps));
            }
            Change::StepsReordered { steps } => self.step_ids = Some(texts(steps)),
            Change::InstructionsUpdated { instructions, .. } => {
                self.instructions = Some(instructions);
            }
            Change::StepRenamed {
                title,
                instructions,
                ..
            } => {
                self.title = Some(title);
                self.instructions = Some(instructions);
            }
            Change::PlanUpdated { routing } => self.add_routing(routing),
            Change::BudgetSet { budget, used } => {
                self.budget = budget.map(Into::into);
                self.used = Some((*used).into());
            }
            Change::StepUpdated { step } => self.step = Some(NewStepJson::from(&**step)),
            Change::StepRedone {
                reason, successors, ..
            } => {
                self.reason = Some(Cow::from(reason));
                self.successors = Some(each(&**successors));
            }
            Change::BranchAdded { branch } => self.branch = Some(BranchJson::from(branch)),
            Change::StepRemoved { .. }
            | Change::StepFailed { .. }
            | Change::StepSkipped { .. }
            | Change::StepRequeued { .. } => {}
        }
    }

    /// The keys are those of `create_research_plan`, with ids instead of orders: orders change, and
    /// the audit trail must stay correct.
    fn add_plan(&mut self, plan: &'e Created) {
        self.plan_id = Some(Text(plan.plan));
        self.name = Some(&plan.brief.name);
        self.research_question = Some(&plan.brief.research_question);
        self.plan_design_rationale = plan.brief.design_rationale.as_deref();
        self.output_formatting_notes = plan.brief.output_formatting_notes.as_deref();
        let origin = plan.origin;
        self.origin = (origin != Origin::default()).then_some(origin.as_str());
        self.forked_from = plan.brief.forked_from.as_ref().map(ForkedFromJson::from);
        self.steps = Some(each(&plan.steps));
        self.branching_conditions = Some(each(&plan.branches));
        self.stall_threshold_ms = plan.stall_threshold.map(Millis::from);
        self.on_stall = Some(plan.on_stall.as_str());
        self.on_dependency_failure = unless_default(plan.on_dependency_failure);
        self.add_session(plan.session.as_ref());
        self.add_routing(&plan.routing);
        self.budget = plan.budget.map(Into::into);
    }

    fn add_routing(&mut self, routing: &'e Routing) {
        self.project_key = routing.project_key.as_deref();
        self.labels = some_labels(&routing.labels);
        self.priority = Priority::unless_default(routing.priority);
    }

    /// The result is flat among the other details: an enclosing object would nest its data deeper
    /// than on the wire, and the depth limit of a parser could then reject what it accepted before.
    fn add_result(&mut self, result: &'e StepResult) {
        self.result_summary = Some(&result.summary);
        self.result = result.data.as_ref();
        self.confidence = result.confidence;
        self.step_execution_report = result.report.as_ref();
        self.output_formatting_notes = result.formatting_notes.as_deref();
        self.evidence = gates::evidence(&result.evidence);
    }

    fn add_claim(&mut self, claim: &'e Claim) {
        self.attempt = Some(claim.attempt);
        self.claim_token = Some(claim.token.as_str());
        self.add_session(claim.session.as_ref());
        self.add_move(PENDING, IN_PROGRESS);
    }

    fn add_failure(&mut self, from: StepStatus, reason: &'e FailReason) {
        self.add_move(from.as_str(), StepStatus::Failed.as_str());
        self.kind = Some(reason.kind());
        self.reason = match reason {
            FailReason::Manual(text) | FailReason::Rejected(text) => text.as_deref().map(Cow::from),
            FailReason::Stalled | FailReason::AttemptsExhausted => Some(reason.to_string().into()),
        };
    }

    fn add_skip(&mut self, from: StepStatus, by: SkipCause) {
        self.add_move(from.as_str(), StepStatus::Skipped.as_str());
        match by {
            SkipCause::Branch(id) => (self.by, self.branch_id) = (Some("branch"), Some(Text(id))),
            SkipCause::Review(id) => (self.by, self.review_id) = (Some("review"), Some(Text(id))),
            SkipCause::Person => self.by = Some("person"),
        }
    }

    fn add_skill(&mut self, execution: SkillExecutionId, skill: &'e str, error: Option<&'e str>) {
        self.error_message = error;
        self.execution_id = Some(Text(execution));
        self.skill_name = Some(skill);
    }

    fn add_effect(&mut self, branch: BranchId, effect: &'e Effect) {
        self.branch_id = Some(Text(branch));
        match effect {
            Effect::Continued => {}
            Effect::Skipped { target, steps } => {
                self.target_step_id = Some(Text(*target));
                self.skipped_step_ids = Some(texts(steps));
            }
            Effect::Added { steps } => self.steps = Some(each(&**steps)),
            Effect::FailedPlan { reason } => self.reason = reason.as_deref().map(Cow::from),
            Effect::Nothing { reason } => {
                self.no_effect = Some(NoEffectJson(*reason));
                self.reason = Some(reason.to_string().into());
            }
        }
    }

    /// A request and the decision `modify` change the status of the step. After the other
    /// decisions, a separate event of the step contains the change.
    fn add_review(&mut self, review: ReviewId, action: &'e ReviewAction) {
        self.review_id = Some(Text(review));
        match action {
            ReviewAction::Requested {
                summary,
                questions,
                session,
                scope,
                by,
                result,
                options,
            } => {
                self.fields = review::fields(&options.fields);
                self.due_at = review::due_at(options);
                self.on_deadline = review::on_deadline(options);
                self.assignee = options.assignee.as_deref();
                match result {
                    // The summary of the review is that of the result.
                    Some(result) => self.add_result(result),
                    None => self.summary = Some(summary),
                }
                self.scope = (*scope != ReviewScope::default()).then_some(Text(*scope));
                self.review_by = by.map(Text);
                self.questions = Some(questions.iter().map(String::as_str).collect());
                self.add_session(session.as_ref());
                self.add_move(scope.previous_status().as_str(), AWAITING_INPUT);
            }
            ReviewAction::Decided {
                decision,
                feedback,
                answers,
                by,
            } => {
                (self.by, self.recipient) = review::decided_by(by);
                self.feedback = feedback.as_deref();
                self.answers = answers.as_ref();
                if *decision == Decision::Modify {
                    self.add_move(AWAITING_INPUT, IN_PROGRESS);
                }
            }
        }
    }
}
