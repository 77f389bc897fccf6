//! What agents and people say about a step, by chance: results, progress, questions, decisions.

use std::sync::Arc;

use onward_core::event::Decision;
use onward_core::id::ClaimToken;
use onward_core::step::StepResult;
use onward_core::{StepId, StepStatus};
use onward_engine::step::{Progress, Question};
use onward_engine::submit::Submission;
use serde_json::json;

use super::Crowd;
use crate::ask::What;
use crate::model::{Plan, Step};

impl Crowd {
    pub(super) fn result(&mut self) -> StepResult {
        let dice = &mut self.dice;
        let words = ["found", "found again", "nothing", "two ways"];
        let mut data = json!({});
        if dice.percent(60) {
            data["verdict"] = json!(dice.pick(&["ok", "reject", "unsure"]));
        }
        if dice.percent(50) {
            data["sources"] = json!(vec!["a"; dice.place(5)]);
        }
        let summary = dice.pick(&words).copied().unwrap_or_default();
        StepResult {
            summary: match dice.percent(2) {
                true => " ".to_owned(),
                false => format!("{summary} {}", dice.below(4)),
            },
            data: dice.percent(60).then_some(data),
            confidence: dice.percent(70).then(|| dice.below(11) as f64 / 10.0),
            report: dice.percent(10).then(|| json!({ "tools": 3 })),
            formatting_notes: dice.percent(15).then(|| "as a table".to_owned()),
        }
    }

    pub(super) fn submit(&mut self, agent: usize, tenant: &Arc<str>, plan: &Plan) -> What {
        let (step, token) = self.some_claim(agent, tenant, plan);
        let submission = Submission {
            step,
            result: self.result(),
            token,
            session: self.agents[agent].session.clone(),
            claim_next: self.dice.percent(35),
        };
        let sent = &mut self.agents[agent].sent;
        sent.push((Arc::clone(tenant), submission.clone()));
        What::Submit(submission)
    }

    /// What was said before; sometimes in other words.
    pub(super) fn again(&mut self, agent: usize) -> Option<(Arc<str>, What)> {
        let sent = self.agents[agent].sent.clone();
        let (tenant, mut submission) = self.dice.pick(&sent)?.clone();
        match self.dice.below(10) {
            0 => submission.result = self.result(),
            1 => submission.token = None,
            2 => submission.claim_next = !submission.claim_next,
            3 => submission.token = Some(ClaimToken::new("made up")),
            _ => {}
        }
        Some((tenant, What::Submit(submission)))
    }

    pub(super) fn progress(&mut self, agent: usize, tenant: &Arc<str>, plan: &Plan) -> What {
        let (step, token) = self.some_claim(agent, tenant, plan);
        let dice = &mut self.dice;
        What::Progress(Progress {
            step,
            note: dice.percent(50).then(|| format!("half {}", dice.below(3))),
            percent: dice.percent(50).then(|| dice.below(105) as f64),
            token,
            session: self.agents[agent].session.clone(),
        })
    }

    pub(super) fn question(&mut self, agent: usize, tenant: &Arc<str>, plan: &Plan) -> What {
        let (step, token) = self.some_claim(agent, tenant, plan);
        let dice = &mut self.dice;
        What::Question(Question {
            step,
            summary: match dice.percent(3) {
                true => String::new(),
                false => format!("is this right {}", dice.below(3)),
            },
            questions: vec!["why?".to_owned(); dice.place(3)],
            token,
            session: self.agents[agent].session.clone(),
        })
    }

    pub(super) fn decide(&mut self, plan: &Plan) -> What {
        let waits = |step: &&Step| step.status == StepStatus::AwaitingInput;
        let waiting = plan.steps.iter().find(waits).map(Step::id);
        let any: Vec<StepId> = plan.steps.iter().map(Step::id).collect();
        let dice = &mut self.dice;
        let other = dice.pick(&any).copied();
        let step = waiting.filter(|_| !dice.percent(5)).or(other);
        let decision = dice.weighed(&[
            (40, Decision::Modify),
            (40, Decision::Approve),
            (10, Decision::Reject),
            (15, Decision::Skip),
        ]);
        let words = ["shorter", "with sources", "  "];
        let feedback = dice.pick(&words).copied().unwrap_or_default();
        let feedback = dice.percent(80).then(|| feedback.to_owned());
        let step = step.unwrap_or(StepId::from_u128(dice.id()));
        What::Decide(step, decision, feedback)
    }

    /// A result for a step, from somebody who forgot the token.
    pub(crate) fn result_for(&mut self, step: StepId) -> What {
        let mut result = self.result();
        result.summary.push('.');
        What::Submit(Submission {
            step,
            result,
            token: None,
            session: None,
            claim_next: self.dice.percent(50),
        })
    }
}
