//! Growth: what a step costs on a long plan, and in a database that holds much already; and what the
//! sweep costs beside a million steps in progress. Each as a ratio to the same in an empty database, by
//! turns: machines are shared, and what they give changes within seconds.

use std::path::Path;
use std::time::{Duration, Instant};

use onward_engine::{Address, Engine};
use tokio::runtime::Runtime;

use crate::drive::Course;
use crate::report::{Timed, median};

const PLANS: u32 = 100_000;
const STEPS: u32 = 10;

/// How often each has its turn.
const TURNS: usize = 5;

/// The schema on a server that holds much.
const SCHEMA: &str = "grown";

pub(crate) fn measure(
    runtime: &Runtime,
    folder: &Path,
    postgres: Option<&str>,
    grown: bool,
    span: Duration,
) {
    let bench = Bench { runtime, span };
    let file = |name: &str| Address::File(folder.join(name));
    bench.long_plans("SQLite", &file("small.db"));
    if grown {
        bench.drive(&file("grown.db"), STEPS as usize);
        fill_file(&folder.join("grown.db"), PLANS);
        bench.many_plans("SQLite", &file("small.db"), &file("grown.db"));
    }
    if let Some(url) = postgres {
        let server = |url: &str| Address::parse(url).expect("an address");
        bench.long_plans("PostgreSQL", &server(url));
        if grown {
            let sign = if url.contains('?') { '&' } else { '?' };
            let full = format!("{url}{sign}options=-c%20search_path%3D{SCHEMA}");
            runtime.block_on(make_schema(url));
            bench.drive(&server(&full), STEPS as usize);
            runtime.block_on(fill_server(&full, PLANS));
            bench.many_plans("PostgreSQL", &server(url), &server(&full));
        }
    }
}

struct Bench<'a> {
    runtime: &'a Runtime,
    span: Duration,
}

impl Bench<'_> {
    /// Advances plans of so many steps; and how long a round of the sweep takes afterwards.
    fn drive(&self, address: &Address, steps: usize) -> (Timed, Duration) {
        self.runtime.block_on(async {
            let engine = Engine::open(address, Default::default());
            let engine = engine.await.expect("an engine");
            let course = Course::prepare(&engine, 1, steps, false, self.span).await;
            let driven = course.run(&engine).await;
            let swept = sweep(&engine).await;
            engine.close().await;
            (driven, swept)
        })
    }

    fn long_plans(&self, database: &str, address: &Address) {
        let turns = (0..TURNS).map(|_| {
            let (short, _) = self.drive(address, STEPS as usize);
            let (long, _) = self.drive(address, 10_000);
            (short, long)
        });
        tell(
            database,
            "a plan of 10,000 steps",
            &turns.collect::<Vec<_>>(),
        );
    }

    fn many_plans(&self, database: &str, empty: &Address, full: &Address) {
        let (mut turns, mut rounds) = (Vec::new(), Vec::new());
        for _ in 0..TURNS {
            let (small, swept) = self.drive(empty, STEPS as usize);
            let (grown, swept_full) = self.drive(full, STEPS as usize);
            turns.push((small, grown));
            rounds.push((swept, swept_full));
        }
        let steps = PLANS * STEPS;
        tell(database, &format!("{PLANS} plans, {steps} steps"), &turns);
        let middle = |of: fn(&(Duration, Duration)) -> Duration| {
            median(
                rounds
                    .iter()
                    .map(|round| of(round).as_secs_f64() * 1e6)
                    .collect(),
            )
        };
        println!(
            "{database}: a round of the sweep with nothing stalled: {:.0} µs, beside {steps} steps in \
             progress: {:.0} µs",
            middle(|round| round.0),
            middle(|round| round.1),
        );
    }
}

/// The medians of the ratios, turn by turn: of how long a call takes, and of how long the processor works.
fn tell(database: &str, what: &str, turns: &[(Timed, Timed)]) {
    let ratio = |of: fn(&Timed) -> Duration| {
        let each = turns
            .iter()
            .map(|(small, grown)| of(grown).as_secs_f64() / of(small).as_secs_f64());
        median(each.collect())
    };
    println!(
        "{database}, {what}: a call takes {:.2} times as long at the median, {:.2} times the \
         processor, by turns",
        ratio(|timed| timed.quantile(0.5)),
        ratio(Timed::cpu_each),
    );
}

/// The median of some rounds.
async fn sweep(engine: &Engine) -> Duration {
    let mut watcher = engine.watcher();
    let mut rounds = Timed::default();
    for _ in 0..20 {
        let began = Instant::now();
        engine.sweep(&mut watcher).await.expect("a round");
        rounds.each.push(began.elapsed());
    }
    rounds.quantile(0.5)
}

/// Far in the future, so that nothing of what is filled in stalls.
const NEVER: i64 = 200_000_000_000_000;

fn plan_columns(id: &str) -> String {
    format!("'local', {id}, 'Filler', 'None', 'mark', 'executing', 0, {STEPS}, 0, 0, 0, 0, 1, 1, 1")
}

const PLAN: &str = "INSERT INTO plans (tenant_id, plan_id, name, research_question, on_stall, \
    status, pending, in_progress, awaiting_input, completed, skipped, failed, seq, created_at, \
    updated_at)";
const STEP: &str = "INSERT INTO steps (tenant_id, step_id, plan_id, step_order, step_type, \
    instructions, depends_on, max_attempts, status, attempt, claim_token, started_at, undelivered, \
    superseded, updated_at, open_dependencies, stalls_at)";

fn step_columns(id: &str, order: &str) -> String {
    format!(
        "'local', {id}, plan_id, {order}, 'custom', 'Nothing.', '[]', 3, 'in_progress', 1, 't', 1, \
         0, '[]', 1, 0, {NEVER}"
    )
}

/// A branch behind each plan's first step.
const BRANCH: &str = "INSERT INTO branches (tenant_id, branch_id, plan_id, after_step, ordinal, \
    condition, action, params)";

fn branch_columns(id: &str) -> String {
    format!("'local', {id}, plan_id, step_id, 1, 'false', 'continue', '{{}}'")
}

fn fill_file(path: &Path, plans: u32) {
    let file = rusqlite::Connection::open(path).expect("the file");
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
         COMMIT;",
        count(plans),
        count(STEPS),
    ))
    .expect("rows");
}

async fn connect(url: &str) -> tokio_postgres::Client {
    let connecting = tokio_postgres::connect(url, tokio_postgres::NoTls);
    let (client, connection) = connecting.await.expect("a server");
    tokio::spawn(connection);
    client
}

async fn make_schema(url: &str) {
    let made = format!("CREATE SCHEMA {SCHEMA}");
    let client = connect(url).await;
    client.batch_execute(&made).await.expect("a new schema");
}

async fn fill_server(url: &str, plans: u32) {
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
             COMMIT; ANALYZE;"
        ))
        .await
        .expect("rows");
}
