//! A random walk: any call, about any step, again and again. What each call answered comes back as
//! text, so that two walks along the same choices can be held beside each other.

use std::fmt::Debug;
use std::time::Duration;

use onward_core::command::{ActionSpec, CreatePlan, Modification, StepRef};
use onward_core::event::Decision;
use onward_core::id::{ClaimToken, SessionId};
use onward_core::policy::OnStall;
use onward_core::{PlanId, StepId};
use onward_engine::Error;
use onward_engine::next::Next;
use onward_engine::step::{Progress, Question};
use onward_engine::submit::Submission;
use serde_json::json;

use crate::desk::Desk;
use crate::verbs::result_without_token;
use crate::world::Simulated;

/// Where a walk stands.
pub(crate) struct Walk {
    pub(crate) plan: PlanId,
    choices: Simulated,
    tokens: Vec<(StepId, ClaimToken)>,
}

fn shown<T: Debug>(answer: Result<T, Error>) -> String {
    match answer {
        Ok(answer) => format!("{answer:?}"),
        Err(why) => format!("{}: {why}, kept {:?}", why.code(), why.kept()),
    }
}

impl Walk {
    /// Makes a plan whose steps may be silent for some milliseconds.
    pub(crate) async fn begin(desk: &Desk, seed: &str, policy: OnStall) -> Self {
        let choices = Simulated::of(seed);
        let plan = desk.create(Self::draft(desk, &choices, policy)).await.id;
        Self {
            plan,
            choices,
            tokens: Vec::new(),
        }
    }

    fn draft(desk: &Desk, choices: &Simulated, policy: OnStall) -> CreatePlan {
        let mut draft = desk.draft(8);
        draft.on_stall = policy;
        draft.stall_threshold = Some(Duration::from_millis(3 + choices.below(8)));
        for (place, step) in draft.steps.iter_mut().enumerate() {
            if choices.below(3) == 0 {
                step.stall_threshold = Some(Duration::from_millis(1 + choices.below(9)));
            }
            step.max_attempts = Some(1 + u32::try_from(choices.below(3)).unwrap());
            if place > 2 && choices.below(3) == 0 {
                step.depends_on = vec![1 + u32::try_from(choices.below(3)).unwrap()];
            }
        }
        let more = ActionSpec::AddSteps(vec![desk.step("more")]);
        draft
            .branches
            .push(desk.branch(2, "confidence > 0.5", more));
        let skip = ActionSpec::SkipTo(StepRef::Order(6));
        draft
            .branches
            .push(desk.branch(4, "confidence > 0.5", skip));
        draft
    }

    fn chance(&self, one_in: u64) -> bool {
        self.choices.below(one_in) == 0
    }

    async fn any_step(&self, desk: &Desk) -> StepId {
        let steps = desk.order(self.plan).await;
        let place = self.choices.below(steps.len().try_into().unwrap());
        steps[usize::try_from(place).unwrap()]
    }

    /// The step, and a token of it: the latest, an older one, or none.
    async fn speaks_for(&self, desk: &Desk) -> (StepId, Option<ClaimToken>) {
        if self.tokens.is_empty() || self.chance(4) {
            return (self.any_step(desk).await, None);
        }
        let newest = self.tokens.len().saturating_sub(3);
        let place = newest + usize::try_from(self.choices.below(3)).unwrap();
        let (step, token) = &self.tokens[place.min(self.tokens.len() - 1)];
        (*step, Some(token.clone()))
    }

    fn keep(&mut self, next: &Next) {
        if let Next::Started(step) = next {
            self.tokens.push((step.step, step.token.clone()));
        }
    }

    /// One call, and what it answered.
    pub(crate) async fn step(&mut self, desk: &Desk) -> String {
        let (engine, me) = (&desk.engine, &desk.me);
        match self.choices.below(16) {
            0..=4 => {
                let session = SessionId::new(format!("s{}", self.choices.below(3)));
                let stalled = self.chance(3);
                let next = engine
                    .next_step(me, self.plan, Some(session), stalled)
                    .await;
                if let Ok(next) = &next {
                    self.keep(next);
                }
                shown(next)
            }
            5..=7 => self.submit(desk).await,
            8..=9 => {
                let (step, token) = self.speaks_for(desk).await;
                let progress = Progress {
                    step,
                    note: None,
                    percent: Some(12.5),
                    token,
                    session: None,
                };
                shown(engine.report_progress(me, progress).await)
            }
            10 => {
                let (step, token) = self.speaks_for(desk).await;
                let question = Question {
                    step,
                    summary: "so?".to_owned(),
                    questions: vec!["or so?".to_owned()],
                    token,
                    session: None,
                };
                shown(engine.request_review(me, question).await)
            }
            11..=12 => {
                let open = engine.open_reviews(me, 1).await.unwrap();
                let Some(open) = open.first() else {
                    return "no review".to_owned();
                };
                // A rejection would end most walks early.
                let decision = [Decision::Approve, Decision::Modify, Decision::Skip]
                    [usize::try_from(self.choices.below(3)).unwrap()];
                let words = Some("words".to_owned());
                shown(engine.decide_review(me, open.step, decision, words).await)
            }
            13 => self.modify(desk).await,
            14 => shown(engine.resume_plan(me, self.plan).await),
            _ => shown(engine.status(me, self.plan, None).await),
        }
    }

    async fn submit(&mut self, desk: &Desk) -> String {
        let (step, token) = self.speaks_for(desk).await;
        let mut submission = Submission {
            token,
            claim_next: self.chance(2),
            ..result_without_token(step, "words")
        };
        submission.result.confidence = Some(if self.chance(2) { 0.9 } else { 0.1 });
        submission.result.data = self
            .chance(2)
            .then(|| json!({ "key": [1.5, null, "text"] }));
        let submitted = desk.submit(submission).await;
        if let Ok(Some(next)) = submitted.as_ref().map(|answer| &answer.next_step) {
            self.keep(next);
        }
        shown(submitted)
    }

    async fn modify(&mut self, desk: &Desk) -> String {
        let step = self.any_step(desk).await;
        let modification = match self.choices.below(6) {
            0 => Modification::AddSteps {
                steps: desk.steps(1),
                insert_after: Some(u32::try_from(self.choices.below(9)).unwrap()),
            },
            1 => Modification::RemoveStep { step },
            2 => Modification::ReorderSteps {
                steps: desk.order(self.plan).await.into_iter().rev().collect(),
            },
            3 => Modification::FailStep { step, reason: None },
            4 => Modification::RequeueStep { step },
            _ => Modification::UpdateInstructions {
                step,
                instructions: "others".to_owned(),
            },
        };
        let resume = self.chance(2);
        let modified = desk
            .engine
            .modify_plan(&desk.me, self.plan, modification, None, resume);
        shown(modified.await)
    }

    /// Some milliseconds of rest, mostly none.
    pub(crate) fn rest(&self) -> u64 {
        self.choices.below(4)
    }
}
