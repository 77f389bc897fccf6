//! Moves to another database: every row of every table arrives, agents continue with their claims,
//! and an interrupted move continues.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use onward_core::command::{ActionSpec, CreatePlan, ReportSkill, StepRef};
use onward_core::finding::Kind;
use onward_core::id::SessionId;
use onward_core::skill::SkillStatus;
use onward_core::{PlanId, Role, Timestamp};
use onward_engine::embed::Embedder;
use onward_engine::engine::Settings;
use onward_engine::feedback::NewFeedback;
use onward_engine::next_step::AssignedStep;
use onward_engine::relocate::{Phase, Progress, Relocated, relocate};
use onward_engine::request_log::CompletedRequest;
use onward_engine::search::{Mode, SearchRequest};
use onward_engine::session::{Fingerprint, HookSource};
use onward_engine::step::ReviewRequest;
use onward_engine::tool_calls::{InitialState, NewCall};
use onward_engine::{Caller, Engine, Error, store};
use onward_testbed::Backend;
use serde_json::json;

use crate::database::TestDatabase;
use crate::embedder::TestEmbedder;
use crate::extractions::extracted;
use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{claimed_step, document, submission_for};
use crate::research::{deliverable, finding};
use crate::sessions::{call, control, single_call};

const TENANT: &str = "acme";

/// Tables that belong to one database or to its running servers.
const NOT_COPIED: [&str; 4] = ["leases", "onward_schema", "sign_changes", "onward_move"];

/// What agents and users hold while the database is moved.
struct Held {
    claimed: AssignedStep,
    secret: String,
    draft: CreatePlan,
    created: PlanId,
}

fn settings(harness: &Harness) -> Settings {
    Settings {
        environment: Arc::clone(&harness.environment) as Arc<_>,
        ..Settings::default()
    }
}

fn other(backend: Backend) -> Backend {
    match backend {
        Backend::Sqlite => Backend::Postgres,
        Backend::Postgres => Backend::Sqlite,
    }
}

fn with_embedder(engine: Engine) -> Engine {
    let embedder: Arc<dyn Embedder> = Arc::new(TestEmbedder::new("test"));
    engine.with_embedder(embedder)
}

async fn open(harness: &Harness, database: &TestDatabase) -> Engine {
    let opened = Engine::open(&database.address(), settings(harness)).await;
    with_embedder(opened.expect("engine was opened"))
}

/// A new database with one tenant and an engine on it.
async fn new_source(harness: &Harness) -> (TestDatabase, Engine, Caller) {
    let database = TestDatabase::create(harness.database.backend());
    let engine = open(harness, &database).await;
    engine.create_tenant(TENANT).await.unwrap();
    let me = engine.operator(TENANT, "me").await.unwrap();
    (database, engine, me)
}

async fn run(
    harness: &Harness,
    from: &TestDatabase,
    to: &TestDatabase,
) -> Result<Relocated, Error> {
    let (from, to) = (from.address(), to.address());
    relocate(&from, &to, settings(harness), &mut |_| {}).await
}

/// Number of rows of each table, as listed in the catalog.
fn row_counts(database: &TestDatabase) -> BTreeMap<String, String> {
    let catalog = match database.backend() {
        Backend::Sqlite => {
            "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' \
             AND name NOT LIKE 'sqlite%'"
        }
        Backend::Postgres => {
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace \
             AND relkind = 'r'"
        }
    };
    let tables = database.sql(catalog).unwrap();
    let tables = tables.lines().filter(|table| !NOT_COPIED.contains(table));
    let count = |table: &str| {
        database
            .sql(&format!("SELECT count(*) FROM {table}"))
            .unwrap()
    };
    tables
        .map(|table| (table.to_owned(), count(table)))
        .collect()
}

/// Fills every table.
async fn fill(harness: &Harness, engine: &Engine, me: &Caller) -> Held {
    let mut draft = harness.draft(3);
    draft.steps[1].depends_on = vec![1];
    draft.stall_threshold = Some(Duration::from_secs(60));
    let skip = ActionSpec::SkipTo(StepRef::Order(3));
    draft.branches = vec![harness.branch(1, "result.summary == 'no'", skip)];
    let key = || Some("key".to_owned());
    let created = engine.create_plan(me, draft.clone(), key()).await.unwrap();
    let plan = created.created.plan;
    let session = || Some(SessionId::new("one"));
    let claimed = claimed_step(engine.next_step(me, plan, session(), false).await.unwrap());
    let resumed = engine.record_session_resume(me, plan, SessionId::new("another"));
    resumed.await.unwrap();
    let reviewed = engine
        .create_plan(me, harness.draft(1), None)
        .await
        .unwrap();
    let asking = engine
        .next_step(me, reviewed.created.plan, None, false)
        .await;
    let review = ReviewRequest {
        step: claimed_step(asking.unwrap()).step,
        summary: "correct?".to_owned(),
        questions: Vec::new(),
        scope: onward_core::step::ReviewScope::Plan,
        options: Default::default(),
        token: None,
        session: None,
    };
    engine.request_review(me, review).await.unwrap();
    let (secret, _) = engine
        .create_token(me, "agent", Role::Agent, None)
        .await
        .unwrap();
    let expires_at = Timestamp::from_millis(i64::MAX / 2);
    engine.sign_out(me, "browser", expires_at).await.unwrap();
    let mut note = finding("Moons", "Io and Europa circle Jupiter");
    note.plan = Some(plan);
    let artifact = engine.store_research(me, note).await.unwrap().id;
    let alone = finding("Without a plan", "Ganymede");
    engine.store_research(me, alone).await.unwrap();
    let output = deliverable(plan, "Answer", "Callisto is the fourth");
    engine.store_output(me, output).await.unwrap();
    let extraction = extracted(Some(artifact), json!({ "moons": 2 }));
    engine.store_extraction(me, extraction).await.unwrap();
    let ended = engine
        .create_plan(me, harness.draft(1), None)
        .await
        .unwrap();
    let step = engine.next_step(me, ended.created.plan, None, false).await;
    let result = submission_for(&claimed_step(step.unwrap()), "Amalthea is the fifth");
    engine.submit(me, result).await.unwrap();
    engine.embed_pending().await.unwrap();
    let feedback = NewFeedback {
        plan,
        rating: Some(5),
        comment: None,
        output: None,
    };
    engine.submit_feedback(me, feedback).await.unwrap();
    let task = engine.create_task(me, "extract_data", None, json!({ "moons": 2 }));
    task.await.unwrap();
    let skill = ReportSkill {
        skill: "survey".to_owned(),
        status: SkillStatus::Started,
        session: None,
        plan: None,
        metadata: serde_json::Map::new(),
        error: None,
    };
    engine.log_skill(me, None, skill).await.unwrap();
    fill_session(harness, engine, me, plan).await;
    let claimed_notices = engine.claim_notifications(&me.tenant, &Kind::ALL, 9).await;
    assert!(!claimed_notices.unwrap().notifications.is_empty());
    Held {
        claimed,
        secret,
        draft,
        created: plan,
    }
}

/// A session with a turn, a step of the turn and a call that is running.
async fn fill_session(harness: &Harness, engine: &Engine, me: &Caller, plan: PlanId) {
    let source = || HookSource {
        session: "one".to_owned(),
        agent: "harness".to_owned(),
        directory: Some("/work".to_owned()),
        ..HookSource::default()
    };
    let turn = engine.begin_turn(me, source(), Fingerprint::Unavailable, control());
    turn.await.unwrap();
    let mut step = single_call(call("1", "make", "done"));
    step.plans = vec![plan];
    engine
        .observe_step(me, source(), step, control())
        .await
        .unwrap();
    let owner = Some(harness.environment.start_process(7, 100));
    let new_call = NewCall::from_hook(Some("2".to_owned()), "Bash".to_owned(), json!({}), owner);
    let recorded = engine.record_call(me, source(), None, new_call, InitialState::Running);
    recorded.await.unwrap();
    engine.log_request(
        me,
        CompletedRequest {
            tool: "ping".to_owned(),
            session: None,
            request: Cow::Owned(json!({})),
            response: Cow::Owned(json!({ "ok": true })),
            duration: Duration::from_micros(5),
            is_error: false,
        },
    );
}

/// The mode of a search, and the titles that it finds, sorted.
async fn titles(engine: &Engine, me: &Caller, query: &str) -> (Mode, Vec<String>) {
    let request = SearchRequest {
        query: query.to_owned(),
        ..SearchRequest::default()
    };
    let found = engine.search(me, request).await.unwrap();
    let titles = found.results.iter().map(|found| found.hit.title.clone());
    let mut titles: Vec<String> = titles.collect();
    titles.sort();
    (found.mode, titles)
}

async fn moves_every_table_and_back(harness: &Harness) {
    let (source, engine, me) = new_source(harness).await;
    let held = fill(harness, &engine, &me).await;
    let exported = document(&engine, &me, held.created).await;
    let searched = titles(&engine, &me, "europa callisto").await;
    assert_eq!(searched.1.len(), 4);
    engine.close().await;
    let expected = row_counts(&source);
    for (table, rows) in &expected {
        assert_ne!(rows, "0", "the test writes no row to `{table}`");
    }

    let target = TestDatabase::create(other(source.backend()));
    let moved = run(harness, &source, &target).await.unwrap();
    assert_eq!((moved.failed, moved.tenants, moved.plans), (None, 2, 3));
    let total: u64 = expected
        .values()
        .map(|rows| rows.parse::<u64>().unwrap())
        .sum();
    assert_eq!(moved.rows, total);
    assert_eq!(row_counts(&target), expected);
    // The move changes the source in no table.
    assert_eq!(row_counts(&source), expected);

    let back = TestDatabase::create(source.backend());
    run(harness, &target, &back).await.unwrap();
    assert_eq!(row_counts(&back), expected);

    for database in [&target, &back] {
        let engine = open(harness, database).await;
        let me = engine.operator(TENANT, "me").await.unwrap();
        assert_eq!(document(&engine, &me, held.created).await, exported);
        let found = titles(&engine, &me, "europa callisto").await;
        assert_eq!(found, searched);
        let plain = Engine::open(&database.address(), settings(harness)).await;
        let plain = plain.expect("engine was opened");
        for (word, title) in [
            ("ganymede", "Without a plan"),
            ("europa", "Moons"),
            ("callisto", "Answer"),
            ("amalthea", "1"),
        ] {
            assert_eq!(titles(&plain, &me, word).await.1, [title]);
        }
        plain.close().await;
        let agent = engine.authenticate(&held.secret).await.unwrap();
        assert_eq!((&*agent.tenant, agent.role), (TENANT, Role::Agent));
        let signed_out = engine.is_signed_out(&me.tenant, "browser").await;
        assert!(signed_out.unwrap());
        let repeated = engine
            .create_plan(&me, held.draft.clone(), Some("key".to_owned()))
            .await
            .unwrap();
        assert_eq!(repeated.created.plan, held.created);
        let submitted = engine.submit(&me, submission_for(&held.claimed, "two moons"));
        submitted.await.expect("the claim is still valid");
        let verified = engine.verify(&me).await.unwrap();
        assert_eq!(
            (verified.inconsistencies, verified.index_errors),
            (vec![], vec![])
        );
        engine.close().await;
    }
}

/// Runs a move that is interrupted after its third batch.
async fn interrupt(harness: &Harness, from: &TestDatabase, to: &TestDatabase) {
    let (from, to, settings) = (from.address(), to.address(), settings(harness));
    let mut batches = 0;
    let task = tokio::spawn(async move {
        let mut report = |progress: Progress| {
            batches += u32::from(progress.phase == Phase::Copy);
            assert!(batches < 4, "the move is interrupted");
        };
        relocate(&from, &to, settings, &mut report).await
    });
    assert!(task.await.is_err_and(|error| error.is_panic()));
}

fn is_rejected(result: Result<impl Sized, Error>) -> bool {
    matches!(result, Err(Error::Store(store::Error::Move { .. })))
}

async fn continues_an_interrupted_move(harness: &Harness) {
    let (source, engine, me) = new_source(harness).await;
    fill(harness, &engine, &me).await;
    engine.close().await;
    let expected = row_counts(&source);
    let target = TestDatabase::create(other(source.backend()));
    interrupt(harness, &source, &target).await;
    let opened = Engine::open(&target.address(), settings(harness)).await;
    assert!(is_rejected(opened), "an unfinished target cannot be used");
    let schema = onward_engine::schema(&target.address()).await;
    assert!(is_rejected(schema.map_err(Error::Store)));
    let mut first = None;
    let (from, to) = (source.address(), target.address());
    let mut report = |progress: Progress| {
        if progress.phase == Phase::Copy && first.is_none() {
            first = Some(progress.done);
        }
    };
    let moved = relocate(&from, &to, settings(harness), &mut report)
        .await
        .unwrap();
    assert_eq!(moved.failed, None);
    assert!(first > Some(0), "the copied rows are not copied again");
    assert_eq!(row_counts(&target), expected);
    open(harness, &target).await.close().await;
}

async fn detects_a_source_that_changed_after_an_interruption(harness: &Harness) {
    let (source, engine, me) = new_source(harness).await;
    fill(harness, &engine, &me).await;
    let target = TestDatabase::create(other(source.backend()));
    interrupt(harness, &source, &target).await;
    // Chunks and artifacts are copied first.
    source
        .sql("UPDATE artifacts SET title = 'changed'")
        .unwrap();
    assert!(is_rejected(run(harness, &source, &target).await));
    let opened = Engine::open(&target.address(), settings(harness)).await;
    assert!(is_rejected(opened), "a target that differs cannot be used");
    engine.close().await;
}

async fn rejects_a_target_with_data(harness: &Harness) {
    let (source, engine, me) = new_source(harness).await;
    engine
        .create_plan(&me, harness.draft(1), None)
        .await
        .unwrap();
    let target = TestDatabase::create(other(source.backend()));
    let used = open(harness, &target).await;
    used.create_tenant("theirs").await.unwrap();
    used.close().await;
    assert!(is_rejected(run(harness, &source, &target).await));
    assert!(is_rejected(run(harness, &source, &source).await));
    let empty = TestDatabase::create(other(source.backend()));
    open(harness, &empty).await.close().await;
    let moved = run(harness, &source, &empty).await.unwrap();
    assert_eq!(moved.plans, 1);
    // The source can be written again.
    engine
        .create_plan(&me, harness.draft(1), None)
        .await
        .unwrap();
    engine.close().await;
}

async fn other_sessions_cannot_write_to_the_source(harness: &Harness) {
    let (source, engine, me) = new_source(harness).await;
    engine
        .create_plan(&me, harness.draft(1), None)
        .await
        .unwrap();
    let target = TestDatabase::create(other(source.backend()));
    let (from, to) = (source.address(), target.address());
    let mut rejected = Vec::new();
    let mut report = |progress: Progress| {
        if progress.phase == Phase::Copy {
            let write = "UPDATE plans SET name = 'changed'";
            rejected.push(match &source {
                TestDatabase::File(dir) => {
                    let file = rusqlite::Connection::open(dir.join("onward.db")).unwrap();
                    file.busy_timeout(Duration::ZERO).unwrap();
                    file.execute_batch(write).is_err()
                }
                TestDatabase::Server(_) => {
                    let write = format!("SET lock_timeout = '10ms'; {write}");
                    source.sql(&write).is_err()
                }
            });
        }
    };
    relocate(&from, &to, settings(harness), &mut report)
        .await
        .unwrap();
    assert!(!rejected.is_empty() && rejected.iter().all(|rejected| *rejected));
    engine.close().await;
}

async fn an_inconsistent_source_is_not_copied(harness: &Harness) {
    let (source, engine, me) = new_source(harness).await;
    engine
        .create_plan(&me, harness.draft(1), None)
        .await
        .unwrap();
    engine.close().await;
    source.sql("UPDATE plans SET name = 'changed'").unwrap();
    let target = TestDatabase::create(other(source.backend()));
    let moved = run(harness, &source, &target).await.unwrap();
    assert_eq!(moved.failed, Some(Phase::VerifySource));
    let copied = target.sql("SELECT count(*) FROM plans").unwrap();
    assert_eq!(copied, "0");
}

on_both_databases!(
    moves_every_table_and_back,
    continues_an_interrupted_move,
    detects_a_source_that_changed_after_an_interruption,
    rejects_a_target_with_data,
    other_sessions_cannot_write_to_the_source,
    an_inconsistent_source_is_not_copied,
);
