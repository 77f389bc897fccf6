//! A fault at each store operation of each call. After an error nothing is stored, unless the fault
//! occurred after the commit: then the complete change is stored and only the response is lost. On
//! SQLite each of these calls syncs the write-ahead log after its commit.

use onward_core::command::{Modification, ModifyPlan};
use onward_core::event::Decision;
use onward_core::id::SessionId;
use onward_core::{Code, PlanId};
use onward_engine::engine::Settings;
use onward_engine::next_step::{AssignedStep, NextStep};
use onward_engine::step::{ProgressReport, ReviewDecision, ReviewRequest};
use onward_engine::submit::Submission;
use onward_engine::{Caller, Engine, Error, Faults};
use onward_testbed::{Backend, Rng};

use crate::agents::database::TestDatabase;
use crate::agents::plans;
use crate::is_input_output_error;

/// All calls that change a plan.
const CALLS: [&str; 9] = [
    "create",
    "next",
    "submit",
    "progress",
    "review",
    "decide",
    "modify",
    "resume session",
    "abandon",
];

/// Upper bound of the store operations of a call.
const MAX_OPERATIONS: u32 = 100;

/// Number of operations that no call reaches.
const NEVER: u32 = u32::MAX;

#[tokio::test]
async fn a_failed_call_stores_nothing_unless_its_response_was_lost_on_sqlite() {
    fail_every_operation(Backend::Sqlite).await;
}

#[tokio::test]
async fn a_failed_call_stores_nothing_unless_its_response_was_lost_on_postgres() {
    fail_every_operation(Backend::Postgres).await;
}

async fn fail_every_operation(backend: Backend) {
    let database = TestDatabase::create(backend);
    let faults = Faults::armed();
    let settings = Settings {
        faults: faults.clone(),
        ..Settings::default()
    };
    let engine = Engine::open(&database.address, settings).await.unwrap();
    let (caller, mut violations) = (Caller::local("me"), Vec::new());
    let mut synced = Vec::new();
    for call in CALLS {
        for number in 0..MAX_OPERATIONS {
            let fixture = Fixture::new(&engine, &caller, call).await;
            let before = fixture.count_events().await;
            faults.fail_after(number);
            let result = fixture.call(call).await;
            let fault_occurred = !faults.is_pending();
            faults.fail_after(NEVER);
            let changed = fixture.count_events().await != before;
            let failed_to_sync =
                matches!(&result, Err(Error::Store(error)) if is_input_output_error(error));
            if failed_to_sync {
                // The number of operations before the sync depends on the plans that exist.
                if synced.last() != Some(&call) {
                    synced.push(call);
                }
            }
            // The message of any other injected fault ends with the name of its point.
            let message = result.as_ref().err().map(ToString::to_string);
            let response_lost = failed_to_sync
                || message
                    .as_ref()
                    .is_some_and(|text| text.ends_with("(Committed)"));
            if changed != (result.is_ok() || response_lost) {
                violations.push(format!(
                    "`{call}`, operation {number}: {message:?}, changed: {changed}"
                ));
            }
            if !fault_occurred {
                assert!(number > 0, "`{call}` has no store operations");
                break;
            }
        }
    }
    let checked = engine.verify(&caller).await.unwrap();
    assert_eq!(checked.inconsistencies, []);
    assert!(violations.is_empty(), "{}", violations.join("\n"));
    match backend {
        Backend::Sqlite => assert_eq!(synced, CALLS),
        // The server syncs its log before it reports the commit.
        Backend::Postgres => assert!(synced.is_empty()),
    }
}

/// A plan in the state that a call requires, with its first step assigned.
struct Fixture<'a> {
    engine: &'a Engine,
    caller: &'a Caller,
    plan: PlanId,
    assigned: Option<AssignedStep>,
}

impl<'a> Fixture<'a> {
    async fn new(engine: &'a Engine, caller: &'a Caller, call: &str) -> Self {
        let mut fixture = Self {
            engine,
            caller,
            plan: engine.new_plan_id(),
            assigned: None,
        };
        if call == "create" {
            return fixture;
        }
        fixture.create().await.unwrap();
        let next = engine.next_step(caller, fixture.plan, None, false).await;
        if let NextStep::Started(assigned) = next.unwrap() {
            fixture.assigned = Some(*assigned);
        }
        if call == "decide" {
            fixture.call("review").await.unwrap();
        }
        fixture
    }

    async fn create(&self) -> Result<(), Error> {
        let mut command = plans::branching(self.engine, &mut Rng::new(7), "fault", 6);
        command.plan = self.plan;
        let key = Some(self.plan.to_string());
        let new_plan = self.engine.create_plan(self.caller, command, key);
        new_plan.await.map(drop)
    }

    async fn call(&self, call: &str) -> Result<(), Error> {
        let (engine, caller, plan) = (self.engine, self.caller, self.plan);
        let Some(AssignedStep { step, token, .. }) = self.assigned.clone() else {
            return self.create().await;
        };
        let (token, session) = (Some(token), None);
        match call {
            "next" => engine.next_step(caller, plan, None, false).await.map(drop),
            "submit" => {
                let submission = Submission {
                    step,
                    result: plans::result(&mut Rng::new(1), "found"),
                    token,
                    session,
                    claim_next: true,
                };
                engine.submit(caller, submission).await.map(drop)
            }
            "progress" => {
                let progress = ProgressReport {
                    step,
                    note: None,
                    percent: Some(10.0),
                    token,
                    session,
                };
                engine.report_progress(caller, progress).await.map(drop)
            }
            "review" => {
                let review = ReviewRequest {
                    step,
                    summary: "Is this correct?".to_owned(),
                    questions: Vec::new(),
                    scope: onward_core::step::ReviewScope::Plan,
                    options: Default::default(),
                    token,
                    session,
                };
                engine.request_review(caller, review).await.map(drop)
            }
            "decide" => {
                let decided = engine
                    .decide_review(caller, ReviewDecision::new(step, Decision::Approve, None));
                decided.await.map(drop)
            }
            "modify" => {
                let modification = Modification::AddSteps {
                    steps: vec![plans::step(engine, "One more.")],
                    insert_after: Some(1),
                };
                let modified = engine.modify_plan(caller, plan, ModifyPlan::new(modification));
                modified.await.map(drop)
            }
            "resume session" => {
                engine
                    .record_session_resume(caller, plan, SessionId::new("other"))
                    .await
            }
            "abandon" => engine.abandon_plan(caller, plan, None).await.map(drop),
            other => panic!("unknown call `{other}`"),
        }
    }

    /// Number of entries in the plan's audit trail.
    async fn count_events(&self) -> usize {
        let entries = self
            .engine
            .audit_trail(self.caller, self.plan, 0, 1000)
            .await;
        match entries {
            Ok(entries) => entries.len(),
            Err(error) if error.code() == Code::PlanNotFound => 0,
            Err(error) => panic!("{error}"),
        }
    }
}
