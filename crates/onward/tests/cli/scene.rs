//! Plans that the scripts are about, made through the engine with a clock and dice of their own.
//!
//! The binary sees them under the real clock, so everything here happened a round while ago: ages
//! then read the same in every run. Ids of plans come from the dice and are always the same; those of
//! steps hold the time, and the scripts call them by names.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use onward_core::command::{ActionSpec, BranchSpec, CreatePlan, StepRef, StepSpec};
use onward_core::id::SessionId;
use onward_core::step::StepResult;
use onward_core::{PlanId, StepId, StepType, Timestamp};
use onward_engine::engine::Settings;
use onward_engine::next::{Handed, Next};
use onward_engine::research::{Deliverable, Finding};
use onward_engine::step::{Progress, Question};
use onward_engine::submit::Submission;
use onward_engine::world::{System, World};
use onward_engine::{Address, Caller, Engine};

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// A directory for one test, gone when the test ends, and what is called what in it.
pub(crate) struct Scene {
    pub(crate) folder: PathBuf,
    /// The database as the binary is told it.
    pub(crate) database: String,
    /// Names that scripts use, and what they stand for.
    pub(crate) names: Vec<(String, String)>,
}

impl Scene {
    /// An empty directory; the database is a file in it that nobody has made.
    pub(crate) fn empty(test: &str) -> Self {
        let name = format!("cli-{test}-{}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        drop(std::fs::remove_dir_all(&folder));
        std::fs::create_dir_all(folder.join("home")).expect("a folder can be made");
        Self {
            folder,
            database: "onward.db".to_owned(),
            names: Vec::new(),
        }
    }

    /// The same, on another database.
    pub(crate) fn on(mut self, database: String) -> Self {
        self.database = database;
        self
    }

    pub(crate) fn is_server(&self) -> bool {
        self.database.contains("://")
    }

    /// With the plans of [`Stage`].
    pub(crate) fn with_plans(mut self) -> Self {
        let address = match self.is_server() {
            true => Address::Server(self.database.clone()),
            false => Address::File(self.folder.join(&self.database)),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime starts");
        self.names = runtime.block_on(Stage::set(&address));
        self
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // What stays behind is in the build's own folder.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A clock that is set, and dice that fall the same way each time.
struct Told {
    clock: AtomicI64,
    rolled: AtomicU64,
}

impl World for Told {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.clock.load(Ordering::SeqCst))
    }

    fn dice(&self, bytes: &mut [u8]) {
        for byte in bytes {
            // Splitmix: good enough to tell ids apart.
            let mut roll = self.rolled.fetch_add(1, Ordering::SeqCst);
            roll = roll.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            roll = (roll ^ (roll >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            roll = (roll ^ (roll >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            *byte = u8::try_from((roll ^ (roll >> 31)) & 0xff).unwrap_or(0);
        }
    }
}

/// Where the plans are made.
struct Stage {
    engine: Engine,
    world: Arc<Told>,
    agent: Caller,
    start: i64,
    names: Vec<(String, String)>,
}

impl Stage {
    async fn set(address: &Address) -> Vec<(String, String)> {
        let start = System.now().as_millis();
        let world = Arc::new(Told {
            clock: AtomicI64::new(start),
            rolled: AtomicU64::new(1),
        });
        let settings = Settings {
            world: Arc::clone(&world) as Arc<dyn World>,
            ..Settings::default()
        };
        let mut stage = Self {
            engine: Engine::open(address, settings).await.expect("it opens"),
            world,
            agent: Caller::local("agent"),
            start,
            names: Vec::new(),
        };
        stage.finished().await;
        stage.given_up().await;
        stage.stalled().await;
        stage.hostile().await;
        stage.reviewed().await;
        stage.under_way().await;
        stage.elsewhere().await;
        stage.researched().await;
        let Stage { engine, names, .. } = stage;
        engine.close().await;
        names
    }

    /// It is so long ago, and a bit, so that the age reads the same for a while.
    fn ago(&self, span: i64) {
        let now = self.start - span - span / 20 - 1_000;
        self.world.clock.store(now, Ordering::SeqCst);
    }

    fn wait(&self, span: i64) {
        self.world.clock.fetch_add(span, Ordering::SeqCst);
    }

    fn name(&mut self, name: &str, id: impl ToString) {
        self.names.push((name.to_owned(), id.to_string()));
    }

    fn step(&self, kind: StepType, title: &str, instructions: &str) -> StepSpec {
        let mut step = StepSpec::new(self.engine.fresh_step(), kind, instructions);
        step.title = (!title.is_empty()).then(|| title.to_owned());
        step
    }

    async fn make(&mut self, name: &str, plan: CreatePlan) -> PlanId {
        for (step, order) in plan.steps.iter().zip(1..) {
            self.name(&format!("{name}-{order}"), step.id);
        }
        let created = self
            .engine
            .create_plan(&self.agent, plan, None)
            .await
            .expect("it is made");
        let plan = created.created.plan;
        self.name(name, plan);
        plan
    }

    async fn claim(&self, plan: PlanId, session: Option<&str>) -> Handed {
        let session = session.map(SessionId::new);
        match self
            .engine
            .next_step(&self.agent, plan, session, false)
            .await
        {
            Ok(Next::Started(handed)) => *handed,
            other => panic!("no step: {other:?}"),
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
            .expect("it is accepted");
    }

    fn plan(&self, name: &str, question: &str, steps: Vec<StepSpec>) -> CreatePlan {
        CreatePlan::new(self.engine.fresh_plan(), name, question, steps)
    }

    async fn finished(&mut self) {
        self.ago(40 * DAY);
        let step = self.step(StepType::Custom, "", "Say hello.");
        let plan = self.plan("Greeting", "How does one say hello?", vec![step]);
        let plan = self.make("greeting", plan).await;
        let step = self.claim(plan, None).await.step;
        self.submit(step, StepResult::of_summary("Hello.")).await;
    }

    async fn given_up(&mut self) {
        self.ago(20 * DAY);
        let steps = vec![self.step(StepType::Search, "Find it", "Look everywhere.")];
        let plan = self.plan("Lost city", "Where is it?", steps);
        let plan = self.make("lost", plan).await;
        let reason = Some("nobody knows".to_owned());
        self.engine
            .abandon_plan(&self.agent, plan, reason)
            .await
            .expect("it is given up");
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
        let plan = self.make("comets", plan).await;
        let _ = self.claim(plan, Some("laptop")).await;
        self.wait(4 * DAY);
        watcher.sleep_until(self.engine.now());
        let round = self.engine.sweep(&mut watcher).await.expect("it sweeps");
        assert_eq!(round.acted_on.len(), 1, "the plan is marked");
    }

    /// A plan whose every text tries to take over the terminal, the document or the line.
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
        let plan = self.make("evil", plan).await;
        let step = self.claim(plan, Some("s\u{1b}[31m")).await.step;
        let mut result = StepResult::of_summary(format!("done{escape}"));
        result.data = Some(serde_json::json!({ "a\u{1b}": "```\n~~~\u{9b}" }));
        self.submit(step, result).await;
    }

    async fn reviewed(&mut self) {
        self.ago(90 * MINUTE);
        let steps = vec![
            self.step(StepType::Analyze, "Compare", "Compare the offers."),
            self.step(StepType::Checkpoint, "Decide", "Say which one."),
        ];
        let plan = self.plan("Boats", "Which boat shall we buy?", steps);
        let plan = self.make("boats", plan).await;
        let step = self.claim(plan, None).await.step;
        self.wait(5 * MINUTE);
        let question = Question {
            step,
            summary: "Three fit.\nThe blue one is cheapest.".to_owned(),
            questions: vec!["Is blue fine?".to_owned()],
            token: None,
            session: None,
        };
        self.engine
            .request_review(&self.agent, question)
            .await
            .expect("it is asked");
    }

    async fn under_way(&mut self) {
        self.ago(5 * HOUR);
        let steps = vec![
            self.step(StepType::Search, "Find sources", "Find three sources."),
            self.step(StepType::Analyze, "Dig deeper", "Dig deeper."),
            self.step(StepType::Extract, "Numbers", "Take out the numbers."),
            self.step(
                StepType::Synthesize,
                "Answer",
                "Write the answer.\nIn two paragraphs.",
            ),
        ];
        let mut plan = self.plan("Tides", "Why are there two tides a day?", steps);
        plan.branches.push(BranchSpec {
            id: self.engine.fresh_branch(),
            after_order: 1,
            condition: "confidence >= 0.8".to_owned(),
            action: ActionSpec::SkipTo(StepRef::Order(3)),
        });
        plan.stall_threshold = Some(Duration::from_secs(30 * 24 * 60 * 60));
        plan.design_rationale = Some("Sources first.".to_owned());
        let plan = self.make("tides", plan).await;
        let step = self.claim(plan, Some("desk")).await.step;
        self.wait(2 * MINUTE);
        let mut result = StepResult::of_summary("Three sources, all agree.");
        result.confidence = Some(0.9);
        result.data = Some(serde_json::json!({ "sources": 3 }));
        self.submit(step, result).await;
        self.wait(MINUTE);
        let step = self.claim(plan, Some("desk")).await.step;
        self.ago(2 * HOUR);
        let progress = Progress {
            step,
            note: Some("half of the tables".to_owned()),
            percent: Some(50.0),
            token: None,
            session: None,
        };
        self.engine
            .report_progress(&self.agent, progress)
            .await
            .expect("it is noted");
    }

    /// A plan of another tenant, which nobody here may see.
    async fn elsewhere(&mut self) {
        self.ago(DAY);
        self.engine.create_tenant("acme").await.expect("it is made");
        let theirs = self
            .engine
            .operator("acme", "agent")
            .await
            .expect("it is there");
        let ours = std::mem::replace(&mut self.agent, theirs);
        let steps = vec![self.step(StepType::Custom, "", "Secret.")];
        let plan = self.plan("Secret", "What is nobody to know?", steps);
        self.make("secret", plan).await;
        self.store("Theirs", "Secret words about tides.", None)
            .await;
        self.agent = ours;
    }

    async fn store(&self, title: &str, content: &str, source_url: Option<&str>) -> String {
        let finding = Finding {
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
        stored.expect("it is stored").id.to_string()
    }

    /// What was found, and what a plan delivered.
    async fn researched(&mut self) {
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
        let (title, words) = (format!("evil{escape}\ntitle"), format!("tides{escape}"));
        let evil = self.store(&title, &words, None).await;
        self.name("evil-note", evil);
        let greeting = self.names.iter().find(|(name, _)| name == "greeting");
        let output = Deliverable {
            plan: greeting.expect("it is made").1.parse().expect("an id"),
            title: "How to say hello".to_owned(),
            content: "Hello. At high tides: ahoy.".to_owned(),
            media_type: None,
        };
        let delivered = self.engine.store_output(&self.agent, output).await;
        self.name("answer", delivered.expect("it is stored").id);
    }
}
