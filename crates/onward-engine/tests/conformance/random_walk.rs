//! A random walk: a seeded sequence of engine calls on random steps. Each call's response is
//! returned as text, so that two walks with the same seed can be compared.

use std::fmt::Debug;
use std::time::Duration;

use onward_core::command::{ActionSpec, CreatePlan, Modification, ModifyPlan, StepRef, StepUpdate};
use onward_core::event::Decision;
use onward_core::id::{ClaimToken, SessionId};
use onward_core::policy::OnStall;
use onward_core::{PlanId, StepId};
use onward_engine::Error;
use onward_engine::next_step::NextStep;
use onward_engine::step::{ProgressReport, ReviewDecision, ReviewRequest};
use onward_engine::submit::Submission;
use serde_json::json;

use crate::environment::SimulatedEnvironment;
use crate::harness::Harness;
use crate::operations::submission_without_token;

/// The state of a walk.
pub(crate) struct RandomWalk {
    pub(crate) plan: PlanId,
    rng: SimulatedEnvironment,
    tokens: Vec<(StepId, ClaimToken)>,
}

fn describe<T: Debug>(result: Result<T, Error>) -> String {
    match result {
        Ok(response) => format!("{response:?}"),
        Err(err) => format!("{}: {err}, kept {:?}", err.code(), err.kept()),
    }
}

impl RandomWalk {
    /// Creates a plan with stall thresholds of a few milliseconds.
    pub(crate) async fn start(harness: &Harness, seed: &str, policy: OnStall) -> Self {
        let rng = SimulatedEnvironment::new(seed);
        let plan = harness.create(Self::draft(harness, &rng, policy)).await.id;
        Self {
            plan,
            rng,
            tokens: Vec::new(),
        }
    }

    fn draft(harness: &Harness, rng: &SimulatedEnvironment, policy: OnStall) -> CreatePlan {
        let mut draft = harness.draft(8);
        draft.on_stall = policy;
        draft.stall_threshold = Some(Duration::from_millis(3 + rng.random_below(8)));
        for (index, step) in draft.steps.iter_mut().enumerate() {
            if rng.random_below(3) == 0 {
                step.stall_threshold = Some(Duration::from_millis(1 + rng.random_below(9)));
            }
            step.max_attempts = Some(1 + u32::try_from(rng.random_below(3)).unwrap());
            if index > 2 && rng.random_below(3) == 0 {
                step.depends_on = vec![1 + u32::try_from(rng.random_below(3)).unwrap()];
            }
        }
        let more = ActionSpec::AddSteps(vec![harness.step("more")]);
        draft
            .branches
            .push(harness.branch(2, "confidence > 0.5", more));
        let skip = ActionSpec::SkipTo(StepRef::Order(6));
        draft
            .branches
            .push(harness.branch(4, "confidence > 0.5", skip));
        draft
    }

    fn one_in(&self, n: u64) -> bool {
        self.rng.random_below(n) == 0
    }

    async fn any_step(&self, harness: &Harness) -> StepId {
        let steps = harness.step_ids(self.plan).await;
        let index = self.rng.random_below(steps.len().try_into().unwrap());
        steps[usize::try_from(index).unwrap()]
    }

    /// A step with one of its claim tokens: the latest, an older one, or none.
    async fn step_and_token(&self, harness: &Harness) -> (StepId, Option<ClaimToken>) {
        if self.tokens.is_empty() || self.one_in(4) {
            return (self.any_step(harness).await, None);
        }
        let newest = self.tokens.len().saturating_sub(3);
        let index = newest + usize::try_from(self.rng.random_below(3)).unwrap();
        let (step, token) = &self.tokens[index.min(self.tokens.len() - 1)];
        (*step, Some(token.clone()))
    }

    fn record_claim(&mut self, next: &NextStep) {
        if let NextStep::Started(step) = next {
            self.tokens.push((step.step, step.token.clone()));
        }
    }

    /// Makes one call and returns its response as text.
    pub(crate) async fn step(&mut self, harness: &Harness) -> String {
        let (engine, me) = (&harness.engine, &harness.me);
        match self.rng.random_below(16) {
            0..=4 => {
                let session = SessionId::new(format!("s{}", self.rng.random_below(3)));
                let stalled = self.one_in(3);
                let next = engine
                    .next_step(me, self.plan, Some(session), stalled)
                    .await;
                if let Ok(next) = &next {
                    self.record_claim(next);
                }
                describe(next)
            }
            5..=7 => self.submit(harness).await,
            8..=9 => {
                let (step, token) = self.step_and_token(harness).await;
                let progress = ProgressReport {
                    step,
                    note: None,
                    percent: Some(12.5),
                    token,
                    session: None,
                };
                describe(engine.report_progress(me, progress).await)
            }
            10 => {
                let (step, token) = self.step_and_token(harness).await;
                let question = ReviewRequest {
                    step,
                    summary: "so?".to_owned(),
                    questions: vec!["or so?".to_owned()],
                    scope: onward_core::step::ReviewScope::Plan,
                    options: Default::default(),
                    token,
                    session: None,
                };
                describe(engine.request_review(me, question).await)
            }
            11..=12 => {
                let open = engine.open_reviews(me, 1).await.unwrap();
                let Some(open) = open.first() else {
                    return "no review".to_owned();
                };
                // Never `Reject`: it would end most walks early.
                let decision = [Decision::Approve, Decision::Modify, Decision::Skip]
                    [usize::try_from(self.rng.random_below(3)).unwrap()];
                let feedback = Some("feedback".to_owned());
                describe(
                    engine
                        .decide_review(me, ReviewDecision::new(open.step, decision, feedback))
                        .await,
                )
            }
            13 => self.modify(harness).await,
            14 => describe(engine.resume_plan(me, self.plan).await),
            _ => describe(engine.status(me, self.plan, None).await),
        }
    }

    async fn submit(&mut self, harness: &Harness) -> String {
        let (step, token) = self.step_and_token(harness).await;
        let mut submission = Submission {
            token,
            claim_next: self.one_in(2),
            ..submission_without_token(step, "summary")
        };
        submission.result.confidence = Some(if self.one_in(2) { 0.9 } else { 0.1 });
        submission.result.data = self
            .one_in(2)
            .then(|| json!({ "key": [1.5, null, "text"] }))
            .map(Into::into);
        let submitted = harness.submit(submission).await;
        if let Ok(Some(next)) = submitted.as_ref().map(|submitted| &submitted.next_step) {
            self.record_claim(next);
        }
        describe(submitted)
    }

    async fn modify(&mut self, harness: &Harness) -> String {
        let step = self.any_step(harness).await;
        let modification = match self.rng.random_below(8) {
            7 => Modification::UpdateStep {
                step,
                update: StepUpdate {
                    depends_on: Some(vec![StepRef::Order(
                        u32::try_from(self.rng.random_below(9)).unwrap(),
                    )]),
                    ..StepUpdate::default()
                },
            },
            6 => Modification::RedoStep {
                step,
                reason: "wrong source".to_owned(),
                cascade: self.one_in(2),
                ids: (0..20).map(|_| harness.engine.new_step_id()).collect(),
            },
            0 => Modification::AddSteps {
                steps: harness.steps(1),
                insert_after: Some(u32::try_from(self.rng.random_below(9)).unwrap()),
            },
            1 => Modification::RemoveStep { step },
            2 => Modification::ReorderSteps {
                steps: harness
                    .step_ids(self.plan)
                    .await
                    .into_iter()
                    .rev()
                    .collect(),
            },
            3 => Modification::FailStep { step, reason: None },
            4 => Modification::RequeueStep { step },
            _ => Modification::UpdateInstructions {
                step,
                instructions: "changed".to_owned(),
            },
        };
        let resume = self.one_in(2);
        let modified = harness.engine.modify_plan(
            &harness.me,
            self.plan,
            ModifyPlan {
                resume,
                ..ModifyPlan::new(modification)
            },
        );
        describe(modified.await)
    }

    /// Milliseconds to wait before the next call, 0 to 3.
    pub(crate) fn pause(&self) -> u64 {
        self.rng.random_below(4)
    }
}
