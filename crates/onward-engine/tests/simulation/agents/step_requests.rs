//! Random requests for a step: results, progress, review requests and decisions.

use std::sync::Arc;
use std::time::Duration;

use onward_core::event::Decision;
use onward_core::id::ClaimToken;
use onward_core::step::{
    Deadline, Evidence, EvidenceKind, FieldKind, OnDeadline, ReviewField, ReviewOptions,
    ReviewScope, StepResult,
};
use onward_core::{StepId, StepStatus};
use onward_engine::step::{ProgressReport, ReviewRequest};
use onward_engine::submit::Submission;
use serde_json::json;

use super::Agents;
use crate::model::{Plan, Step};
use crate::request::Operation;

fn evidence(criterion: &str) -> Evidence {
    Evidence {
        criterion: criterion.to_owned(),
        kind: EvidenceKind::Commit,
        value: "4f2a".to_owned(),
        outcome: "merged".to_owned(),
    }
}

/// Adds to a result what the gates of its step require.
fn pass_gates(plan: &Plan, step: StepId, result: &mut StepResult) {
    let gates = plan
        .index_of(step)
        .and_then(|index| plan.steps[index].spec.gates.as_ref());
    if let Some(gates) = gates {
        let numbers = 1..=gates.acceptance_criteria.len();
        result.evidence = numbers
            .map(|number| evidence(&number.to_string()))
            .collect();
        result.data = Some(json!({ "verdict": "ok" }).into());
    }
}

/// A request with two questions has a typed one, too.
fn options(questions: &[String], deadline: Option<Deadline>) -> ReviewOptions {
    let sure = ReviewField {
        name: "sure".to_owned(),
        title: None,
        kind: FieldKind::Boolean,
        options: Vec::new(),
        default: Some(json!(true).into()),
    };
    ReviewOptions {
        fields: vec![sure; usize::from(questions.len() == 2)],
        assignee: deadline.map(|_| "ann".to_owned()),
        deadline,
    }
}

impl Agents {
    pub(super) fn result(&mut self) -> StepResult {
        let rng = &mut self.rng;
        let summaries = ["found", "found again", "nothing", "two ways"];
        let mut data = json!({});
        if rng.percent(60) {
            data["verdict"] = json!(rng.pick(&["ok", "reject", "unsure"]));
        }
        if rng.percent(50) {
            data["sources"] = json!(vec!["a"; rng.index(5)]);
        }
        let summary = rng.pick(&summaries).copied().unwrap_or_default();
        StepResult {
            summary: if rng.percent(2) {
                " ".to_owned()
            } else {
                format!("{summary} {}", rng.below(4))
            },
            data: rng.percent(60).then_some(data.into()),
            confidence: rng.percent(70).then(|| rng.below(11) as f64 / 10.0),
            report: rng
                .percent(10)
                .then(|| json!({ "tools": 3 }))
                .map(Into::into),
            formatting_notes: rng.percent(15).then(|| "as a table".to_owned()),
            evidence: Vec::new(),
        }
    }

    pub(super) fn submit(&mut self, agent: usize, tenant: &Arc<str>, plan: &Plan) -> Operation {
        let (step, token) = self.pick_claim(agent, tenant, plan);
        let mut result = self.result();
        if self.rng.percent(80) {
            pass_gates(plan, step, &mut result);
        }
        let submission = Submission {
            step,
            result,
            token,
            session: self.agents[agent].session.clone(),
            claim_next: self.rng.percent(35),
        };
        let submissions = &mut self.agents[agent].submissions;
        submissions.push((Arc::clone(tenant), submission.clone()));
        Operation::Submit(submission)
    }

    /// An earlier submission again, sometimes changed.
    pub(super) fn resubmission(&mut self, agent: usize) -> Option<(Arc<str>, Operation)> {
        let submissions = self.agents[agent].submissions.clone();
        let (tenant, mut submission) = self.rng.pick(&submissions)?.clone();
        match self.rng.below(10) {
            0 => submission.result = self.result(),
            1 => submission.token = None,
            2 => submission.claim_next = !submission.claim_next,
            3 => submission.token = Some(ClaimToken::new("invented")),
            _ => {}
        }
        Some((tenant, Operation::Submit(submission)))
    }

    pub(super) fn progress(&mut self, agent: usize, tenant: &Arc<str>, plan: &Plan) -> Operation {
        let (step, token) = self.pick_claim(agent, tenant, plan);
        let rng = &mut self.rng;
        Operation::Progress(ProgressReport {
            step,
            note: rng.percent(50).then(|| format!("half {}", rng.below(3))),
            percent: rng.percent(50).then(|| rng.below(105) as f64),
            token,
            session: self.agents[agent].session.clone(),
        })
    }

    pub(super) fn review_request(
        &mut self,
        agent: usize,
        tenant: &Arc<str>,
        plan: &Plan,
    ) -> Operation {
        let (step, token) = self.pick_claim(agent, tenant, plan);
        let rng = &mut self.rng;
        let summary = if rng.percent(3) {
            String::new()
        } else {
            format!("is this right {}", rng.below(3))
        };
        let questions = vec!["why?".to_owned(); rng.index(3)];
        // The time of the plan's last entry: some deadlines have already passed.
        let last = plan
            .audit_trail
            .last()
            .map_or(plan.created_at, |last| last.at);
        let after = Duration::from_millis(rng.between(1, 120_000));
        let deadline = Deadline {
            at: last.checked_add(after).unwrap_or(last),
            action: rng.pick(&OnDeadline::ALL).copied().unwrap_or_default(),
        };
        let deadline = rng.percent(20).then_some(deadline);
        Operation::RequestReview(ReviewRequest {
            step,
            summary,
            options: options(&questions, deadline),
            questions,
            scope: rng
                .pick(&[ReviewScope::Plan, ReviewScope::Step])
                .copied()
                .unwrap_or_default(),
            token,
            session: self.agents[agent].session.clone(),
        })
    }

    pub(super) fn decide(&mut self, plan: &Plan) -> Operation {
        let awaits_input = |step: &&Step| step.status == StepStatus::AwaitingInput;
        let awaiting = plan.steps.iter().filter(awaits_input).map(Step::id);
        let awaiting: Vec<StepId> = awaiting.collect();
        let all: Vec<StepId> = plan.steps.iter().map(Step::id).collect();
        let rng = &mut self.rng;
        let other = rng.pick(&all).copied();
        let awaiting = rng.pick(&awaiting).copied();
        let step = awaiting.filter(|_| !rng.percent(5)).or(other);
        let decision = rng.weighted(&[
            (40, Decision::Modify),
            (40, Decision::Approve),
            (10, Decision::Reject),
            (15, Decision::Skip),
        ]);
        let feedbacks = ["shorter", "with sources", "  "];
        let feedback = rng.pick(&feedbacks).copied().unwrap_or_default();
        let feedback = rng.percent(80).then(|| feedback.to_owned());
        let step = step.unwrap_or(StepId::from_u128(rng.id()));
        Operation::Decide {
            step,
            decision,
            feedback,
            by_link: rng.percent(20),
        }
    }

    /// A result that passes the gates of its step, without a token.
    pub(crate) fn result_for(&mut self, plan: &Plan, step: StepId) -> Operation {
        let mut result = self.result();
        result.summary.push('.');
        pass_gates(plan, step, &mut result);
        Operation::Submit(Submission {
            step,
            result,
            token: None,
            session: None,
            claim_next: self.rng.percent(50),
        })
    }
}
