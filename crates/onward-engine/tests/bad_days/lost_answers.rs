//! The database goes away at each single operation of each call. An error means that nothing of the
//! call was done, unless it struck after the commit: then all of it was, and only the answer is lost. On
//! a file each of these calls waits for the disk between the two.

use onward_core::command::Modification;
use onward_core::event::Decision;
use onward_core::id::SessionId;
use onward_core::{Code, PlanId};
use onward_engine::engine::Settings;
use onward_engine::next::{Handed, Next};
use onward_engine::step::{Progress, Question};
use onward_engine::submit::Submission;
use onward_engine::{Caller, Engine, Error, Faults};

use crate::dice::Dice;
use crate::place::{Kind, Place};
use crate::plans;

/// Every call that changes a plan.
const CALLS: [&str; 9] = [
    "create", "next", "submit", "progress", "review", "decide", "modify", "take up", "abandon",
];

/// More operations than any call has.
const MOST: u32 = 100;

#[tokio::test]
async fn an_error_on_a_file_means_that_nothing_was_done_unless_the_answer_was_lost() {
    strike_everywhere(Kind::Sqlite).await;
}

#[tokio::test]
async fn an_error_on_postgresql_means_that_nothing_was_done_unless_the_answer_was_lost() {
    strike_everywhere(Kind::Postgres).await;
}

async fn strike_everywhere(kind: Kind) {
    let place = Place::new(kind);
    let faults = Faults::armed();
    let settings = Settings {
        faults: faults.clone(),
        ..Settings::default()
    };
    let engine = Engine::open(&place.address, settings).await.unwrap();
    let (caller, mut wrong) = (Caller::local("me"), Vec::new());
    let mut waited_for_the_disk = Vec::new();
    for call in CALLS {
        for number in 0..MOST {
            let desk = Desk::new(&engine, &caller, call).await;
            let before = desk.events().await;
            faults.strike_after(number);
            let answer = desk.call(call).await;
            let struck = !faults.is_pending();
            // Nothing that follows comes near to this.
            faults.strike_after(u32::MAX);
            let changed = desk.events().await != before;
            let said = answer.as_ref().err().map(ToString::to_string);
            let struck_at = |point| said.as_ref().is_some_and(|said| said.contains(point));
            if struck_at("(Sync)") {
                waited_for_the_disk.push(call);
            }
            let lost = struck_at("(Sync)") || struck_at("(Committed)");
            if changed != (answer.is_ok() || lost) {
                wrong.push(format!(
                    "`{call}`, operation {number}: {said:?}, changed: {changed}"
                ));
            }
            if !struck {
                assert!(number > 0, "`{call}` asks the database nothing");
                break;
            }
        }
    }
    let checked = engine.verify(&caller).await.unwrap();
    assert_eq!(checked.faults, []);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    match kind {
        Kind::Sqlite => assert_eq!(waited_for_the_disk, CALLS),
        // The server does that by itself.
        Kind::Postgres => assert!(waited_for_the_disk.is_empty()),
    }
}

/// A plan whose first step was handed out.
struct Desk<'a> {
    engine: &'a Engine,
    caller: &'a Caller,
    plan: PlanId,
    handed: Option<Handed>,
}

impl<'a> Desk<'a> {
    async fn new(engine: &'a Engine, caller: &'a Caller, call: &str) -> Self {
        let mut desk = Self {
            engine,
            caller,
            plan: engine.fresh_plan(),
            handed: None,
        };
        if call == "create" {
            return desk;
        }
        desk.create().await.unwrap();
        let next = engine.next_step(caller, desk.plan, None, false).await;
        if let Next::Started(handed) = next.unwrap() {
            desk.handed = Some(*handed);
        }
        if call == "decide" {
            desk.call("review").await.unwrap();
        }
        desk
    }

    async fn create(&self) -> Result<(), Error> {
        let mut command = plans::branching(self.engine, &mut Dice::new(7), "struck", 6);
        command.plan = self.plan;
        let key = Some(self.plan.to_string());
        let made = self.engine.create_plan(self.caller, command, key);
        made.await.map(drop)
    }

    async fn call(&self, call: &str) -> Result<(), Error> {
        let (engine, caller, plan) = (self.engine, self.caller, self.plan);
        let Some(Handed { step, token, .. }) = self.handed.clone() else {
            return self.create().await;
        };
        let (token, session) = (Some(token), None);
        match call {
            "next" => engine.next_step(caller, plan, None, false).await.map(drop),
            "submit" => {
                let submission = Submission {
                    step,
                    result: plans::result(&mut Dice::new(1), "found"),
                    token,
                    session,
                    claim_next: true,
                };
                engine.submit(caller, submission).await.map(drop)
            }
            "progress" => {
                let progress = Progress {
                    step,
                    note: None,
                    percent: Some(10.0),
                    token,
                    session,
                };
                engine.report_progress(caller, progress).await.map(drop)
            }
            "review" => {
                let question = Question {
                    step,
                    summary: "Is it so?".to_owned(),
                    questions: Vec::new(),
                    token,
                    session,
                };
                engine.request_review(caller, question).await.map(drop)
            }
            "decide" => {
                let decided = engine.decide_review(caller, step, Decision::Approve, None);
                decided.await.map(drop)
            }
            "modify" => {
                let modification = Modification::AddSteps {
                    steps: vec![plans::step(engine, "One more.")],
                    insert_after: Some(1),
                };
                let modified = engine.modify_plan(caller, plan, modification, None, false);
                modified.await.map(drop)
            }
            "take up" => engine.take_up(caller, plan, SessionId::new("other")).await,
            "abandon" => engine.abandon_plan(caller, plan, None).await.map(drop),
            other => panic!("no call is named `{other}`"),
        }
    }

    /// How many entries the plan's trail has.
    async fn events(&self) -> usize {
        let trail = self.engine.trail(self.caller, self.plan, 0, 1000).await;
        match trail {
            Ok(trail) => trail.len(),
            Err(why) if why.code() == Code::PlanNotFound => 0,
            Err(why) => panic!("{why}"),
        }
    }
}
