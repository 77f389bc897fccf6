//! Plans for the scripts, created through the engine with a fixed clock and a seeded random
//! generator.
//!
//! The binary uses the real clock, so all events are a round amount of time in the past: ages are
//! the same in every run. Plan ids are constants; other ids come from the seeded generator.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use onward_core::command::{ActionSpec, BranchSpec, CreatePlan, StepRef, StepSpec};
use onward_core::id::SessionId;
use onward_core::step::StepResult;
use onward_core::{PlanId, StepId, StepType, Timestamp};
use onward_engine::engine::Settings;
use onward_engine::environment::Environment;
use onward_engine::machine::SystemEnvironment;
use onward_engine::next_step::{AssignedStep, NextStep};
use onward_engine::research::{NewArtifact, NewOutput};
use onward_engine::step::{ProgressReport, ReviewRequest};
use onward_engine::submit::Submission;
use onward_engine::{Address, Caller, Engine};
use onward_testbed::{Rng, TestDir};

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// The first eight digits of the id of each plan.
const PLAN_IDS: [(&str, u32); 7] = [
    ("Boats", 0x7a39_e8ed),
    ("Tides", 0x7411_85b2),
    ("evil", 0x8ae1_e862),
    ("Comets", 0x498c_829b),
    ("Lost city", 0xfcc0_c06f),
    ("Greeting", 0x09f6_7b2f),
    ("Secret", 0x48a0_0991),
];
const PLAN_ID_END: u128 = 0x75a8_4c3b_8d21_3f60_9a7e_5512;

/// The directory and database of one test, and the names of its ids.
pub(crate) struct Fixture {
    pub(crate) dir: TestDir,
    /// The value of `ONWARD_DATABASE`.
    pub(crate) database: String,
    /// Names in scripts, and the ids that they stand for.
    pub(crate) names: Vec<(String, String)>,
}

impl Fixture {
    /// An empty directory; the SQLite file does not exist yet.
    pub(crate) fn empty(test: &str) -> Self {
        let dir = TestDir::new(&format!("cli-{test}"));
        std::fs::create_dir(dir.join("home")).expect("the directory is created");
        Self {
            dir,
            database: "onward.db".to_owned(),
            names: Vec::new(),
        }
    }

    /// Uses another database.
    pub(crate) fn on(mut self, database: String) -> Self {
        self.database = database;
        self
    }

    pub(crate) fn is_server(&self) -> bool {
        self.database.contains("://")
    }

    /// Creates the plans of [`Builder`].
    pub(crate) fn with_plans(mut self) -> Self {
        let address = if self.is_server() {
            Address::Server(self.database.clone())
        } else {
            Address::File(self.dir.join(&self.database))
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("the runtime starts");
        self.names = runtime.block_on(Builder::create_all(&address));
        self
    }
}

/// A clock that the test sets, and a seeded random generator.
struct FixedEnvironment {
    clock: AtomicI64,
    rng: Mutex<Rng>,
}

impl Environment for FixedEnvironment {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.clock.load(Ordering::SeqCst))
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        let mut rng = self.rng.lock().unwrap();
        // One number per byte, as in the ids of the golden files.
        bytes.fill_with(|| rng.next_u64().to_le_bytes()[0]);
    }
}

/// Creates the plans.
struct Builder {
    engine: Engine,
    world: Arc<FixedEnvironment>,
    agent: Caller,
    start: i64,
    names: Vec<(String, String)>,
}

impl Builder {
    async fn create_all(address: &Address) -> Vec<(String, String)> {
        let start = SystemEnvironment.now().as_millis();
        let world = Arc::new(FixedEnvironment {
            clock: AtomicI64::new(start),
            rng: Mutex::default(),
        });
        let settings = Settings {
            environment: Arc::clone(&world) as Arc<dyn Environment>,
            ..Settings::default()
        };
        let mut builder = Self {
            engine: Engine::open(address, settings)
                .await
                .expect("the database opens"),
            world,
            agent: Caller::local("agent"),
            start,
            names: Vec::new(),
        };
        builder.finished().await;
        builder.abandoned().await;
        builder.stalled().await;
        builder.hostile().await;
        builder.reviewed().await;
        builder.in_progress().await;
        builder.other_tenant().await;
        builder.artifacts().await;
        let Builder { engine, names, .. } = builder;
        engine.close().await;
        names
    }

    /// Sets the clock to this time ago, with a margin so that the displayed age is stable.
    fn ago(&self, millis: i64) {
        let now = self.start - millis - millis / 20 - 1_000;
        self.world.clock.store(now, Ordering::SeqCst);
    }

    fn wait(&self, millis: i64) {
        self.world.clock.fetch_add(millis, Ordering::SeqCst);
    }

    fn name(&mut self, name: &str, id: impl ToString) {
        self.names.push((name.to_owned(), id.to_string()));
    }

    fn step(&self, kind: StepType, title: &str, instructions: &str) -> StepSpec {
        let mut step = StepSpec::new(self.engine.new_step_id(), kind, instructions);
        step.title = (!title.is_empty()).then(|| title.to_owned());
        step
    }

    async fn create(&mut self, name: &str, plan: CreatePlan) -> PlanId {
        for (step, order) in plan.steps.iter().zip(1..) {
            self.name(&format!("{name}-{order}"), step.id);
        }
        let created = self
            .engine
            .create_plan(&self.agent, plan, None)
            .await
            .expect("the plan is created");
        let plan = created.created.plan;
        self.name(name, plan);
        plan
    }

    async fn claim(&self, plan: PlanId, session: Option<&str>) -> AssignedStep {
        let session = session.map(SessionId::new);
        match self
            .engine
            .next_step(&self.agent, plan, session, false)
            .await
        {
            Ok(NextStep::Started(claimed)) => *claimed,
            other => panic!("expected a step, got {other:?}"),
        }
    }

    async fn submit(&self, step: StepId, result: StepResult) {
        let submission = Submission {
            step,
            result,
            token: None,
            session: None,
            claim_next: false,
        };
        self.engine
            .submit(&self.agent, submission)
            .await
            .expect("the result is accepted");
    }

    fn plan(&self, name: &str, question: &str, steps: Vec<StepSpec>) -> CreatePlan {
        let id = PLAN_IDS
            .iter()
            .find(|(plan, _)| name.starts_with(plan))
            .map(|(_, id)| PlanId::from_u128(u128::from(*id) << 96 | PLAN_ID_END))
            .expect("the plan has an id");
        CreatePlan::new(id, name, question, steps)
    }

    async fn finished(&mut self) {
        self.ago(40 * DAY);
        let step = self.step(StepType::Custom, "", "Say hello.");
        let plan = self.plan("Greeting", "How do you say hello?", vec![step]);
        let plan = self.create("greeting", plan).await;
        let step = self.claim(plan, None).await.step;
        self.submit(step, StepResult::from_summary("Hello.")).await;
    }

    async fn abandoned(&mut self) {
        self.ago(20 * DAY);
        let steps = vec![self.step(StepType::Search, "Find it", "Look everywhere.")];
        let plan = self.plan("Lost city", "Where is it?", steps);
        let plan = self.create("lost", plan).await;
        let reason = Some("no sources found".to_owned());
        self.engine
            .abandon_plan(&self.agent, plan, reason)
            .await
            .expect("the plan is abandoned");
    }

    async fn stalled(&mut self) {
        self.ago(9 * DAY);
        let mut watcher = self.engine.watcher();
        let steps = vec![
            self.step(
                StepType::Search,
                "Find sources",
                "Find sources about comets.",
            ),
            self.step(StepType::Synthesize, "", "Write it up."),
        ];
        let mut plan = self.plan("Comets", "What are comets made of?", steps);
        plan.stall_threshold = Some(Duration::from_secs(3 * 24 * 60 * 60));
        let plan = self.create("comets", plan).await;
        let _ = self.claim(plan, Some("laptop")).await;
        self.wait(4 * DAY);
        watcher.sleep_until(self.engine.now());
        let round = self
            .engine
            .sweep(&mut watcher)
            .await
            .expect("the sweep runs");
        assert_eq!(round.changed.len(), 1, "the sweep marks the plan");
    }

    /// A plan whose texts contain terminal escapes, Markdown and HTML.
    async fn hostile(&mut self) {
        self.ago(4 * HOUR);
        let escape = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}";
        let mut step = self.step(
            StepType::Custom,
            &format!("title{escape}\r\nnext line"),
            &format!("```\n# not a heading {escape}\n````\n<script>alert(1)</script>"),
        );
        step.stall_threshold = Some(Duration::from_secs(30 * 24 * 60 * 60));
        let name = format!("evil{escape}\n\n# Heading [link](http://example.org) | cell");
        let plan = self.plan(&name, &format!("why?{escape}"), vec![step]);
        let plan = self.create("evil", plan).await;
        let step = self.claim(plan, Some("s\u{1b}[31m")).await.step;
        let mut result = StepResult::from_summary(format!("done{escape}"));
        result.data = Some(serde_json::json!({ "a\u{1b}": "```\n~~~\u{9b}" }).into());
        self.submit(step, result).await;
    }

    async fn reviewed(&mut self) {
        self.ago(90 * MINUTE);
        let steps = vec![
            self.step(StepType::Analyze, "Compare", "Compare the offers."),
            self.step(StepType::Checkpoint, "Decide", "Choose one."),
        ];
        let plan = self.plan("Boats", "Which boat should we buy?", steps);
        let plan = self.create("boats", plan).await;
        let step = self.claim(plan, None).await.step;
        self.wait(5 * MINUTE);
        let question = ReviewRequest {
            step,
            summary: "Three boats fit.\nThe blue one is the cheapest.".to_owned(),
            questions: vec!["Is blue acceptable?".to_owned()],
            scope: onward_core::step::ReviewScope::Plan,
            options: Default::default(),
            token: None,
            session: None,
        };
        self.engine
            .request_review(&self.agent, question)
            .await
            .expect("the review is requested");
    }

    async fn in_progress(&mut self) {
        self.ago(5 * HOUR);
        let steps = vec![
            self.step(StepType::Search, "Find sources", "Find three sources."),
            self.step(StepType::Analyze, "Dig deeper", "Dig deeper."),
            self.step(StepType::Extract, "Numbers", "Extract the numbers."),
            self.step(
                StepType::Synthesize,
                "Answer",
                "Write the answer.\nIn two paragraphs.",
            ),
        ];
        let mut plan = self.plan("Tides", "Why are there two tides a day?", steps);
        plan.branches.push(BranchSpec {
            id: self.engine.new_branch_id(),
            after_order: 1,
            condition: "confidence >= 0.8".to_owned(),
            action: ActionSpec::SkipTo(StepRef::Order(3)),
        });
        plan.stall_threshold = Some(Duration::from_secs(30 * 24 * 60 * 60));
        plan.design_rationale = Some("Sources first.".to_owned());
        let plan = self.create("tides", plan).await;
        let step = self.claim(plan, Some("desk")).await.step;
        self.wait(2 * MINUTE);
        let mut result = StepResult::from_summary("Three sources, all agree.");
        result.confidence = Some(0.9);
        result.data = Some(serde_json::json!({ "sources": 3 }).into());
        self.submit(step, result).await;
        self.wait(MINUTE);
        let step = self.claim(plan, Some("desk")).await.step;
        self.ago(2 * HOUR);
        let progress = ProgressReport {
            step,
            note: Some("half of the tables".to_owned()),
            percent: Some(50.0),
            token: None,
            session: None,
        };
        self.engine
            .report_progress(&self.agent, progress)
            .await
            .expect("the progress is recorded");
    }

    /// A plan of another tenant, which must stay invisible.
    async fn other_tenant(&mut self) {
        self.ago(DAY);
        self.engine
            .create_tenant("acme")
            .await
            .expect("the tenant is created");
        let theirs = self
            .engine
            .operator("acme", "agent")
            .await
            .expect("the tenant exists");
        let ours = std::mem::replace(&mut self.agent, theirs);
        let steps = vec![self.step(StepType::Custom, "", "Secret.")];
        let plan = self.plan("Secret", "What is the secret?", steps);
        self.create("secret", plan).await;
        self.store("Theirs", "Secret words about tides.", None)
            .await;
        self.agent = ours;
    }

    async fn store(&self, title: &str, content: &str, source_url: Option<&str>) -> String {
        let finding = NewArtifact {
            title: title.to_owned(),
            content: content.to_owned(),
            kind: source_url.map(|_| "source".to_owned()),
            plan: None,
            step: None,
            source_url: source_url.map(str::to_owned),
            metadata: serde_json::Map::new(),
            token: None,
            session: None,
        };
        let stored = self.engine.store_research(&self.agent, finding).await;
        stored.expect("the artifact is stored").id.to_string()
    }

    /// Artifacts, and an output of a plan.
    async fn artifacts(&mut self) {
        self.ago(3 * HOUR);
        let url = Some("https://example.org/moon?page=2");
        let long = format!(
            "{}\n\nThe Moon makes the tides. {}",
            "Ebb. ".repeat(90),
            "Flow. ".repeat(90)
        );
        let moon = self.store("The Moon", &long, url).await;
        self.name("moon", moon);
        let escape = "\u{1b}[2J\u{202e}";
        let (title, content) = (format!("evil{escape}\ntitle"), format!("tides{escape}"));
        let evil = self.store(&title, &content, None).await;
        self.name("evil-note", evil);
        let greeting = self.names.iter().find(|(name, _)| name == "greeting");
        let output = NewOutput {
            plan: greeting
                .expect("the plan exists")
                .1
                .parse()
                .expect("a plan id"),
            title: "How to say hello".to_owned(),
            content: "Hello. At high tides: ahoy.".to_owned(),
            media_type: None,
        };
        let delivered = self.engine.store_output(&self.agent, output).await;
        self.name("answer", delivered.expect("the output is stored").id);
    }
}
