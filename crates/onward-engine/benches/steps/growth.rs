//! Growth: the cost of a step on a long plan and in a large database, and the cost of a sweep next
//! to a million steps in progress. Each is a ratio to an empty database. The two alternate, because
//! on a shared machine performance changes within seconds.

use std::path::Path;
use std::time::{Duration, Instant};

use onward_core::command::{CreatePlan, StepSpec};
use onward_core::step::StepType;
use onward_engine::next_step::{NextStep, Worker};
use onward_engine::{Address, Caller, Engine};
use tokio::runtime::Runtime;

use crate::drive::Workload;
use onward_testbed::bench::{Samples, median};

const PLANS: u32 = 100_000;
const STEPS: u32 = 10;

/// Number of alternating measurements of each.
const ROUNDS: usize = 5;

/// PostgreSQL schema of the large database.
const SCHEMA: &str = "grown";

pub(crate) fn measure(
    runtime: &Runtime,
    folder: &Path,
    postgres: Option<&str>,
    grown: bool,
    duration: Duration,
) {
    let bench = Bench { runtime, duration };
    let file = |name: &str| Address::File(folder.join(name));
    bench.long_plans("SQLite", &file("small.db"));
    if grown {
        bench.drive(&file("grown.db"), STEPS as usize);
        fill_sqlite(&folder.join("grown.db"), PLANS);
        bench.many_plans("SQLite", &file("small.db"), &file("grown.db"));
    }
    if let Some(url) = postgres {
        let server = |url: &str| Address::parse(url).expect("valid database URL");
        bench.long_plans("PostgreSQL", &server(url));
        if grown {
            let separator = if url.contains('?') { '&' } else { '?' };
            let full = format!("{url}{separator}options=-c%20search_path%3D{SCHEMA}");
            runtime.block_on(make_schema(url));
            bench.drive(&server(&full), STEPS as usize);
            runtime.block_on(fill_postgres(&full, PLANS));
            bench.many_plans("PostgreSQL", &server(url), &server(&full));
        }
    }
}

struct Bench<'a> {
    runtime: &'a Runtime,
    duration: Duration,
}

impl Bench<'_> {
    /// Advances plans with this many steps. Also returns the duration of a sweep afterwards.
    fn drive(&self, address: &Address, steps: usize) -> (Samples, Duration) {
        self.runtime.block_on(async {
            let engine = Engine::open(address, Default::default());
            let engine = engine.await.expect("engine opened");
            let workload = Workload::prepare(&engine, 1, steps, false, self.duration).await;
            let samples = workload.run(&engine).await;
            let sweep_time = sweep(&engine).await;
            engine.close().await;
            (samples, sweep_time)
        })
    }

    fn long_plans(&self, database: &str, address: &Address) {
        let pairs = (0..ROUNDS).map(|_| {
            let (short, _) = self.drive(address, STEPS as usize);
            let (long, _) = self.drive(address, 10_000);
            (short, long)
        });
        print_ratios(
            database,
            "plan with 10,000 steps",
            &pairs.collect::<Vec<_>>(),
        );
    }

    fn many_plans(&self, database: &str, empty: &Address, full: &Address) {
        let (mut pairs, mut rounds) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let (small, sweep_time) = self.drive(empty, STEPS as usize);
            let (grown, sweep_time_full) = self.drive(full, STEPS as usize);
            pairs.push((small, grown));
            rounds.push((sweep_time, sweep_time_full));
        }
        let steps = PLANS * STEPS;
        print_ratios(database, &format!("{PLANS} plans, {steps} steps"), &pairs);
        let median_micros = |of: fn(&(Duration, Duration)) -> Duration| {
            median(
                rounds
                    .iter()
                    .map(|round| of(round).as_secs_f64() * 1e6)
                    .collect(),
            )
        };
        println!(
            "{database}: sweep with nothing stalled: {:.0} µs, with {steps} steps in \
             progress: {:.0} µs",
            median_micros(|round| round.0),
            median_micros(|round| round.1),
        );
        self.queue(database, full);
    }

    /// Claims steps of the project of the inserted plans and of one with few plans, alternately.
    fn queue(&self, database: &str, full: &Address) {
        self.runtime.block_on(async {
            let engine = Engine::open(full, Default::default());
            let engine = engine.await.expect("engine opened");
            let caller = Caller::local("bench");
            let gpu = || Some(vec!["gpu".to_owned()]);
            for _ in 0..CLAIMS {
                let mut step = StepSpec::new(engine.new_step_id(), StepType::Custom, "Nothing.");
                step.labels = gpu().unwrap_or_default();
                let mut plan = CreatePlan::new(engine.new_plan_id(), "Few", "What?", vec![step]);
                plan.routing.project_key = Some(FEW.to_owned());
                let created = engine.create_plan(&caller, plan, None);
                created.await.expect("plan was created");
            }
            let claim = async |project: &str, labels: Option<Vec<String>>| {
                let is_assigned = labels.is_some();
                let worker = Worker {
                    labels: Some(labels.unwrap_or_default()),
                    ..Worker::default()
                };
                let began = Instant::now();
                let next = engine.next_step_of_project(&caller, project, worker);
                let next = next.await.expect("next step was requested");
                let latency = began.elapsed();
                let is_started = matches!(next, NextStep::Started(_));
                assert_eq!(is_started, is_assigned, "{next:?}");
                latency
            };
            let mut calls = [const { Vec::new() }; 3];
            for _ in 0..CLAIMS {
                calls[0].push(claim(QUEUE, gpu()).await);
                calls[1].push(claim(FEW, gpu()).await);
                calls[2].push(claim(QUEUE, None).await);
            }
            let [many, few, none] = calls.map(|latencies| {
                let seconds = latencies.iter().map(Duration::as_secs_f64);
                median(seconds.collect()) * 1e6
            });
            println!(
                "{database}: claim in a project with {PLANS} ready steps {many:.0} µs, with at most \
                 {CLAIMS} {few:.0} µs ({:.2} times); no step with these labels: {none:.0} µs",
                many / few
            );
            engine.close().await;
        });
    }
}

/// Number of claims in each project.
const CLAIMS: usize = 200;
/// The project with few plans.
const FEW: &str = "few";
/// The project of the first step of each inserted plan.
const QUEUE: &str = "queue";
/// Makes the first step of each inserted plan ready.
const READY: &str = "UPDATE steps SET status = 'pending', claim_token = NULL, started_at = NULL, \
    stalls_at = NULL, labels = '[\"gpu\"]', project_key = 'queue', plan_priority = 5, \
    plan_created_at = 1 WHERE step_order = 1 AND instructions = 'Nothing.'; \
    UPDATE plans SET project_key = 'queue', pending = 1, in_progress = in_progress - 1 \
    WHERE name = 'Filler'";

/// Prints the median ratios of call latency and CPU time.
fn print_ratios(database: &str, scenario: &str, pairs: &[(Samples, Samples)]) {
    let ratio = |of: fn(&Samples) -> Duration| {
        let ratios = pairs
            .iter()
            .map(|(small, grown)| of(grown).as_secs_f64() / of(small).as_secs_f64());
        median(ratios.collect())
    };
    println!(
        "{database}, {scenario}: median call latency {:.2} times, CPU time {:.2} times that of the small \
         database",
        ratio(|samples| samples.quantile(0.5)),
        ratio(Samples::cpu_each),
    );
}

/// Median duration of several sweeps.
async fn sweep(engine: &Engine) -> Duration {
    let mut watcher = engine.watcher();
    let mut rounds = Samples::default();
    for _ in 0..20 {
        let began = Instant::now();
        engine.sweep(&mut watcher).await.expect("sweep succeeded");
        rounds.latencies.push(began.elapsed());
    }
    rounds.quantile(0.5)
}

/// Far in the future, so that no inserted step stalls.
const NEVER: i64 = 200_000_000_000_000;

fn plan_columns(id: &str) -> String {
    format!(
        "'local', {id}, 'Filler', 'None', 'mark', 'executing', 0, {STEPS}, 0, 0, 0, 0, 1, 1, 1, 1, 1, 'a'"
    )
}

const PLAN: &str = "INSERT INTO plans (tenant_id, plan_id, name, research_question, on_stall, \
    status, pending, in_progress, awaiting_input, completed, skipped, failed, seq, created_at, \
    updated_at, acted_at, worked_at, created_by)";
const STEP: &str = "INSERT INTO steps (tenant_id, step_id, plan_id, step_order, step_type, \
    instructions, depends_on, max_attempts, status, attempt, claim_token, started_at, undelivered, \
    superseded, updated_at, open_dependencies, stalls_at)";

fn step_columns(id: &str, order: &str) -> String {
    format!(
        "'local', {id}, plan_id, {order}, 'custom', 'Nothing.', '[]', 3, 'in_progress', 1, 't', 1, \
         0, '[]', 1, 0, {NEVER}"
    )
}

/// One branch after the first step of each plan.
const BRANCH: &str = "INSERT INTO branches (tenant_id, branch_id, plan_id, after_step, ordinal, \
    condition, action, params)";

fn branch_columns(id: &str) -> String {
    format!("'local', {id}, plan_id, step_id, 1, 'false', 'continue', '{{}}'")
}

fn fill_sqlite(path: &Path, plans: u32) {
    let file = rusqlite::Connection::open(path).expect("database opened");
    let count = |of: u32| {
        format!("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {of})")
    };
    let plan = plan_columns("randomblob(16)");
    let step = step_columns("randomblob(16)", "i");
    let branch = branch_columns("randomblob(16)");
    file.execute_batch(&format!(
        "BEGIN;
         {} {PLAN} SELECT {plan} FROM n;
         {} {STEP} SELECT {step} FROM plans, n WHERE name = 'Filler';
         {BRANCH} SELECT {branch} FROM steps WHERE step_order = 1 AND instructions = 'Nothing.';
         INSERT INTO due SELECT 'local', plan_id, {NEVER} FROM plans WHERE name = 'Filler';
         {READY};
         COMMIT;",
        count(plans),
        count(STEPS),
    ))
    .expect("rows inserted");
}

async fn connect(url: &str) -> tokio_postgres::Client {
    let connecting = tokio_postgres::connect(url, tokio_postgres::NoTls);
    let (client, connection) = connecting.await.expect("connected");
    tokio::spawn(connection);
    client
}

async fn make_schema(url: &str) {
    let statement = format!("CREATE SCHEMA {SCHEMA}");
    let client = connect(url).await;
    client
        .batch_execute(&statement)
        .await
        .expect("schema created");
}

async fn fill_postgres(url: &str, plans: u32) {
    let client = connect(url).await;
    let plan = plan_columns("gen_random_uuid()");
    let step = step_columns("gen_random_uuid()", "i");
    let branch = branch_columns("gen_random_uuid()");
    client
        .batch_execute(&format!(
            "BEGIN;
             SELECT set_config('onward.tenant', 'local', true);
             {PLAN} SELECT {plan} FROM generate_series(1, {plans});
             {STEP} SELECT {step} FROM plans, generate_series(1, {STEPS}) AS i
                WHERE name = 'Filler';
             {BRANCH} SELECT {branch} FROM steps
                WHERE step_order = 1 AND instructions = 'Nothing.';
             INSERT INTO due (tenant_id, plan_id, at)
                SELECT 'local', plan_id, {NEVER} FROM plans WHERE name = 'Filler';
             {READY};
             COMMIT; ANALYZE;"
        ))
        .await
        .expect("rows inserted");
}
