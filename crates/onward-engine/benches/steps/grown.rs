//! Growth: what a step costs on a long plan, and in a database that holds much already; and what the
//! sweep costs beside a million steps in progress. Each as a ratio to the same in an empty database.

use std::path::Path;
use std::time::{Duration, Instant};

use onward_engine::{Address, Engine};
use tokio::runtime::Runtime;

use crate::drive::Course;
use crate::report::Timed;

const PLANS: u32 = 100_000;
const STEPS: u32 = 10;

pub(crate) fn measure(
    runtime: &Runtime,
    folder: &Path,
    postgres: Option<&str>,
    grown: bool,
    span: Duration,
) {
    let file = Address::File(folder.join("growth.db"));
    compare(runtime, "SQLite", &file, grown, span, |count| {
        fill_file(&folder.join("growth.db"), count);
    });
    if let Some(url) = postgres {
        let server = Address::parse(url).expect("an address");
        compare(runtime, "PostgreSQL", &server, grown, span, |count| {
            runtime.block_on(fill_server(url, count));
        });
    }
}

fn compare(
    runtime: &Runtime,
    database: &str,
    address: &Address,
    grown: bool,
    span: Duration,
    fill: impl Fn(u32),
) {
    let drive = |steps| {
        runtime.block_on(async {
            let engine = Engine::open(address, Default::default());
            let engine = engine.await.expect("an engine");
            let driven = Course::prepare(&engine, 1, steps, false, span)
                .await
                .run(&engine)
                .await;
            (driven, sweep(&engine).await)
        })
    };
    let (small, swept) = drive(10);
    let (long, _) = drive(10_000);
    tell(database, "a plan of 10,000 steps", &long, &small);
    if grown {
        fill(PLANS);
        let (full, swept_full) = drive(10);
        let what = format!("{PLANS} plans, {} steps", PLANS * STEPS);
        tell(database, &what, &full, &small);
        println!(
            "{database}: a round of the sweep with nothing stalled: {} µs, beside {} steps in \
             progress: {} µs",
            swept.as_micros(),
            PLANS * STEPS,
            swept_full.as_micros()
        );
    }
}

fn tell(database: &str, what: &str, grown: &Timed, small: &Timed) {
    let ratio = |of: fn(&Timed) -> Duration| of(grown).as_secs_f64() / of(small).as_secs_f64();
    println!(
        "{database}, {what}: a call takes {:.2} times as long at the median, {:.2} times the \
         processor",
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

fn fill_file(path: &Path, plans: u32) {
    let file = rusqlite::Connection::open(path).expect("the file");
    let count = |of: u32| {
        format!("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {of})")
    };
    let plan = plan_columns("randomblob(16)");
    let step = step_columns("randomblob(16)", "i");
    file.execute_batch(&format!(
        "BEGIN;
         {} {PLAN} SELECT {plan} FROM n;
         {} {STEP} SELECT {step} FROM plans, n WHERE name = 'Filler';
         INSERT INTO due SELECT 'local', plan_id, {NEVER} FROM plans WHERE name = 'Filler';
         COMMIT;",
        count(plans),
        count(STEPS),
    ))
    .expect("rows");
}

async fn fill_server(url: &str, plans: u32) {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls)
        .await
        .expect("a server");
    tokio::spawn(connection);
    let plan = plan_columns("gen_random_uuid()");
    let step = step_columns("gen_random_uuid()", "i");
    client
        .batch_execute(&format!(
            "BEGIN;
             SELECT set_config('onward.tenant', 'local', true);
             {PLAN} SELECT {plan} FROM generate_series(1, {plans});
             {STEP} SELECT {step} FROM plans, generate_series(1, {STEPS}) AS i
                WHERE name = 'Filler';
             INSERT INTO due (tenant_id, plan_id, at)
                SELECT 'local', plan_id, {NEVER} FROM plans WHERE name = 'Filler';
             COMMIT; ANALYZE;"
        ))
        .await
        .expect("rows");
}
