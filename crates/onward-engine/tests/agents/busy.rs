//! An agent who uses everything: makes plans, claims steps and takes over stalled ones, reports
//! progress, asks people and decides for them, modifies plans, submits results in time and late, and
//! some of them twice. It writes down what it asks for and what it was told.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use onward_core::PlanId;
use onward_core::command::{ActionSpec, BranchSpec, Modification};
use onward_core::event::Decision;
use onward_core::id::ClaimToken;
use onward_engine::create::NewPlan;
use onward_engine::list::PlanQuery;
use onward_engine::next::{Handed, Next};
use onward_engine::step::{Progress, Question};
use onward_engine::submit::{Submission, Submitted};
use onward_engine::{Caller, Engine};

use crate::answers::{claimed, hold, repeated, started};
use crate::dice::Dice;
use crate::history::{Call, Hold, Telling, Told, digest};
use crate::plans;
use crate::scribe::Scribe;

/// Plans that the agents of one process know to be open.
pub type Open = Arc<Mutex<Vec<PlanId>>>;

/// How many plans are worked on at once.
const PLANS: usize = 3;

/// After an answer that helps nobody, an agent waits so long.
const PAUSE: Duration = Duration::from_millis(2);

pub struct Agent {
    engine: Engine,
    caller: Caller,
    dice: Dice,
    scribe: Scribe,
    open: Open,
    /// How many texts it has written: each is one of a kind.
    texts: u64,
    /// A claim that it has lost, and a result for it nevertheless.
    late: Option<(PlanId, Hold)>,
}

/// Whether an agent could go on at once.
enum Went {
    On,
    Nowhere,
}

impl Agent {
    pub fn new(engine: &Engine, name: String, dice: Dice, tell: &Telling, open: &Open) -> Self {
        Self {
            engine: engine.clone(),
            caller: Caller::local(name.clone()),
            dice,
            scribe: Scribe::new(name, tell),
            open: Arc::clone(open),
            texts: 0,
            late: None,
        }
    }

    /// Works, until somebody ends it.
    pub async fn work(mut self) {
        loop {
            if let Went::Nowhere = self.one_thing().await {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    fn text(&mut self, what: &str) -> String {
        self.texts += 1;
        format!("{what} {} of {}", self.texts, self.caller.name)
    }

    async fn one_thing(&mut self) -> Went {
        let Some(plan) = self.some_plan().await else {
            return Went::Nowhere;
        };
        if self.dice.percent(6) {
            self.change_list(plan).await;
        }
        let (engine, caller) = (self.engine.clone(), self.caller.clone());
        let stalled = self.dice.percent(50);
        let asked = engine.next_step(&caller, plan, None, stalled);
        let next = self
            .scribe
            .ask(Call::Next, plan, "", asked, |next| claimed(plan, next))
            .await;
        let mut went = Went::Nowhere;
        let mut next = next;
        while let Some(Next::Started(handed)) = next {
            went = Went::On;
            next = self.work_on(*handed).await;
        }
        if let Some(next) = next {
            self.learn(plan, next).await;
        }
        went
    }

    /// One of the open plans; a fresh one where there are too few.
    async fn some_plan(&mut self) -> Option<PlanId> {
        let open = self
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if open.len() >= PLANS && !self.dice.percent(2) {
            return self.dice.one_of(&open);
        }
        let query = PlanQuery {
            limit: 20,
            ..PlanQuery::default()
        };
        let known = self.engine.list_plans(&self.caller, query).await.ok()?;
        let known: Vec<PlanId> = known
            .plans
            .iter()
            .map(|listed| listed.sheet.head.id)
            .collect();
        let enough = known.len() >= PLANS;
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = known.clone();
        if enough {
            return self.dice.one_of(&known);
        }
        let name = self.text("plan");
        let command = plans::restless(&self.engine, &mut self.dice, &name);
        let (engine, caller, plan) = (self.engine.clone(), self.caller.clone(), command.plan);
        let key = self.dice.percent(50).then(|| name.clone());
        let again = key.is_some() && self.dice.percent(30);
        let asked = engine.create_plan(&caller, command.clone(), key.clone());
        let told = |made: &NewPlan| Told::Created {
            plan,
            digest: digest(&*made.created),
        };
        let made = self.scribe.ask(Call::Create, plan, "", asked, told).await?;
        if again {
            let asked = engine.create_plan(&caller, command, key);
            let told = |second: &NewPlan| repeated(&made, second);
            self.scribe.ask(Call::Create, plan, "", asked, told).await;
        }
        self.open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(plan);
        Some(plan)
    }

    /// Works on a step that was handed out. What comes next, where that was asked for as well.
    async fn work_on(&mut self, handed: Handed) -> Option<Next> {
        let own = hold(&handed);
        if self.dice.percent(25) {
            self.report(&handed).await;
        }
        match self.dice.below(100) {
            0..10 => {
                self.ask_person(&handed).await;
                None
            }
            10..17 => {
                self.hand_back(&handed).await;
                self.late = Some((handed.plan, own));
                None
            }
            // Left lying, as by an agent that died: somebody takes it over when it has stalled.
            17..21 => None,
            _ => {
                let token = self.dice.percent(80).then(|| handed.token.clone());
                let next = self.submit(handed.plan, &own, token).await;
                if let Some((plan, lost)) = self.late.take() {
                    let token = Some(ClaimToken::new(lost.token.clone()));
                    self.submit(plan, &lost, token).await;
                }
                next
            }
        }
    }

    async fn submit(
        &mut self,
        plan: PlanId,
        own: &Hold,
        token: Option<ClaimToken>,
    ) -> Option<Next> {
        let text = self.text("result");
        let submission = Submission {
            step: own.step,
            result: plans::result(&mut self.dice, &text),
            token,
            session: None,
            claim_next: self.dice.percent(60),
        };
        let digest = digest(&submission.result);
        let call = Call::Submit {
            digest: digest.clone(),
            claims: submission.claim_next,
        };
        let (engine, caller) = (self.engine.clone(), self.caller.clone());
        let asked = engine.submit(&caller, submission.clone());
        let told = |done: &Submitted| Told::Completed {
            plan: done.plan,
            step: done.step,
            digest,
            next: done.next_step.as_ref().and_then(started).map(hold),
        };
        let first = self
            .scribe
            .ask(call.clone(), plan, &text, asked, told)
            .await?;
        // A repetition that is not handed anything out asks for the next step anew.
        let hands = first
            .next_step
            .as_ref()
            .is_none_or(|next| started(next).is_some());
        if submission.token.is_some() && hands && self.dice.percent(15) {
            let asked = engine.submit(&caller, submission);
            let told = |second: &Submitted| repeated(&first, second);
            self.scribe.ask(call, plan, &text, asked, told).await;
        }
        first.next_step
    }

    async fn report(&mut self, handed: &Handed) {
        let (plan, step, note) = (handed.plan, handed.step, self.text("note"));
        let progress = Progress {
            step,
            note: Some(note.clone()),
            percent: Some(50.0),
            token: Some(handed.token.clone()),
            session: None,
        };
        let (engine, caller) = (self.engine.clone(), self.caller.clone());
        let asked = engine.report_progress(&caller, progress);
        let told = |_: &_| Told::Progressed {
            plan,
            step,
            note: note.clone(),
        };
        self.scribe
            .ask(Call::Progress, plan, &note, asked, told)
            .await;
    }

    async fn ask_person(&mut self, handed: &Handed) {
        let (plan, step, summary) = (handed.plan, handed.step, self.text("question"));
        let question = Question {
            step,
            summary: summary.clone(),
            questions: vec!["Is it so?".to_owned()],
            token: Some(handed.token.clone()),
            session: None,
        };
        let (engine, caller) = (self.engine.clone(), self.caller.clone());
        let asked = engine.request_review(&caller, question);
        let told = |asked: &onward_engine::step::Asked| Told::Asked {
            plan,
            step,
            review: asked.review.to_string(),
        };
        if self
            .scribe
            .ask(Call::Review, plan, &summary, asked, told)
            .await
            .is_some()
        {
            self.decide(plan, step).await;
        }
    }

    /// Decides for the person.
    async fn decide(&mut self, plan: PlanId, step: onward_core::StepId) {
        let decision = match self.dice.below(20) {
            0 => Decision::Reject,
            1..8 => Decision::Modify,
            8..14 => Decision::Skip,
            _ => Decision::Approve,
        };
        let feedback = self.text("feedback");
        let (engine, caller) = (self.engine.clone(), self.caller.clone());
        let asked = engine.decide_review(&caller, step, decision, Some(feedback.clone()));
        let told = |_: &_| Told::Decided {
            plan,
            step,
            feedback: feedback.clone(),
        };
        self.scribe.ask(Call::Decide, plan, "", asked, told).await;
    }

    async fn hand_back(&mut self, handed: &Handed) {
        let modification = Modification::RequeueStep { step: handed.step };
        self.modify(handed.plan, modification).await;
    }

    async fn modify(&mut self, plan: PlanId, modification: Modification) {
        let (engine, caller) = (self.engine.clone(), self.caller.clone());
        let asked = engine.modify_plan(&caller, plan, modification, None, false);
        let told = |modified: &onward_engine::modify::Modified| Told::Modified {
            plan,
            seq: modified.head.seq,
        };
        self.scribe.ask(Call::Modify, plan, "", asked, told).await;
    }

    async fn change_list(&mut self, plan: PlanId) {
        let page = self
            .engine
            .list_steps(&self.caller, plan, None, 0, 100)
            .await;
        let Ok(page) = page else { return };
        let ids: Vec<_> = page.steps.iter().map(|line| line.id).collect();
        let Some(step) = self.dice.one_of(&ids) else {
            return;
        };
        let modification = match self.dice.below(6) {
            0 => Modification::AddSteps {
                steps: vec![plans::step(&self.engine, "One more.")],
                insert_after: Some(u32::try_from(ids.len()).unwrap_or(0) / 2),
            },
            1 => Modification::RemoveStep { step },
            2 => Modification::ReorderSteps {
                steps: ids.into_iter().rev().collect(),
            },
            3 => Modification::UpdateInstructions {
                step,
                instructions: self.text("instruction"),
            },
            4 => Modification::FailStep { step, reason: None },
            _ => Modification::AddBranch {
                branch: BranchSpec {
                    id: self.engine.fresh_branch(),
                    after_order: 1,
                    condition: "confidence > 0.9".to_owned(),
                    action: ActionSpec::AddSteps(vec![plans::step(&self.engine, "Added.")]),
                },
            },
        };
        self.modify(plan, modification).await;
    }

    /// Nothing was handed out: forgets a plan that is over, and decides what waits for a person.
    async fn learn(&mut self, plan: PlanId, next: Next) {
        match next {
            Next::Complete(_) | Next::Failed { .. } => {
                let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
                open.retain(|other| *other != plan);
            }
            Next::AwaitingReview { step, .. } => self.decide(plan, step).await,
            Next::NoPendingSteps { .. } | Next::Started(_) => {}
        }
    }
}
