//! An agent who works on one plan until it is over, and takes every step that it is given: by a call of
//! its own, or along with the answer to a result.

use std::time::Duration;

use onward_core::PlanId;
use onward_engine::next::{Handed, Next};
use onward_engine::submit::{Submission, Submitted};
use onward_engine::{Caller, Engine};

use crate::answers::{claimed, hold, repeated, started};
use crate::dice::Dice;
use crate::history::{Call, Telling, Told, digest};
use crate::plans;
use crate::scribe::Scribe;

/// Where nothing can be handed out, an agent asks again after this.
const PAUSE: Duration = Duration::from_millis(3);

pub struct Racer {
    engine: Engine,
    caller: Caller,
    dice: Dice,
    scribe: Scribe,
    results: u64,
}

impl Racer {
    pub fn new(engine: &Engine, name: String, dice: Dice, tell: &Telling) -> Self {
        Self {
            engine: engine.clone(),
            caller: Caller::local(name.clone()),
            dice,
            scribe: Scribe::new(name, tell),
            results: 0,
        }
    }

    pub async fn work_on(mut self, plan: PlanId) {
        let mut handed: Option<Handed> = None;
        loop {
            let next = match handed.take() {
                Some(handed) => self.submit(&handed).await,
                None => {
                    let asked = self.engine.next_step(&self.caller, plan, None, false);
                    let told = |next: &Next| claimed(plan, next);
                    self.scribe.ask(Call::Next, plan, "", asked, told).await
                }
            };
            match next {
                Some(Next::Complete(_) | Next::Failed { .. }) => return,
                Some(Next::Started(next)) => handed = Some(*next),
                Some(Next::NoPendingSteps { .. } | Next::AwaitingReview { .. }) => {
                    tokio::time::sleep(PAUSE).await;
                }
                None => {}
            }
        }
    }

    async fn submit(&mut self, handed: &Handed) -> Option<Next> {
        self.results += 1;
        let text = format!("result {} of {}", self.results, self.scribe.name);
        let submission = Submission {
            step: handed.step,
            result: plans::result(&mut self.dice, &text),
            token: Some(handed.token.clone()),
            session: None,
            claim_next: self.dice.percent(60),
        };
        let digest = digest(&submission.result);
        let call = Call::Submit {
            digest: digest.clone(),
            claims: submission.claim_next,
        };
        let told = |done: &Submitted| Told::Completed {
            plan: done.plan,
            step: done.step,
            digest,
            next: done.next_step.as_ref().and_then(started).map(hold),
        };
        let asked = self.engine.submit(&self.caller, submission.clone());
        let plan = handed.plan;
        let first = self.scribe.ask(call.clone(), plan, &text, asked, told);
        let first = first.await?;
        // A repetition that was handed nothing out asks for the next step anew.
        let hands = first
            .next_step
            .as_ref()
            .is_none_or(|next| started(next).is_some());
        if hands && self.dice.percent(10) {
            let told = |second: &Submitted| repeated(&first, second);
            let asked = self.engine.submit(&self.caller, submission);
            self.scribe.ask(call, plan, &text, asked, told).await;
        }
        first.next_step
    }
}
