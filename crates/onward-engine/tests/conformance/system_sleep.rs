//! Sweeps after system sleep: a grace period before steps count as stalled. Terminal plans are
//! never due.

use std::time::Duration;

use onward_core::PlanId;
use onward_core::policy::OnStall;
use onward_engine::step::ProgressReport;

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::CreatedPlan;

const SECOND: Duration = Duration::from_secs(1);
const MILLISECOND: Duration = Duration::from_millis(1);
const SLEEP: Duration = Duration::from_secs(8 * 3600);
/// The default grace period after sleep.
const GRACE: Duration = Duration::from_secs(60);

/// A plan with a stall threshold of one second and the policy `fail`.
async fn plan_failing_on_stall(harness: &Harness, steps: u32) -> CreatedPlan {
    let mut draft = harness.draft(steps);
    draft.stall_threshold = Some(SECOND);
    draft.on_stall = OnStall::Fail;
    harness.create(draft).await
}

async fn after_sleep_the_sweep_waits_for_one_grace_period(harness: &Harness) {
    let plan = plan_failing_on_stall(harness, 2).await;
    let mut watcher = harness.engine.watcher();
    harness.claim(plan.id).await;
    harness.engine.sweep(&mut watcher).await.unwrap();
    harness.advance(SLEEP);
    let round = harness.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!(round.changed, []);
    let woke = harness.now();
    let ends = woke.checked_add(GRACE).unwrap();
    assert_eq!(round.next_at, Some(ends.next()));
    harness.environment.set(ends);
    let round = harness.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!(round.changed, []);
    harness.advance(MILLISECOND);
    let round = harness.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!(round.changed.len(), 1);
    assert_eq!(harness.step_statuses(plan.id).await, ["failed", "pending"]);
}

async fn progress_within_the_grace_period_prevents_a_stall(harness: &Harness) {
    let plan = plan_failing_on_stall(harness, 1).await;
    let mut watcher = harness.engine.watcher();
    let step = harness.claim(plan.id).await;
    harness.engine.sweep(&mut watcher).await.unwrap();
    harness.advance(SLEEP);
    harness.engine.sweep(&mut watcher).await.unwrap();
    harness.advance(GRACE);
    let progress = ProgressReport {
        step: step.step,
        note: None,
        percent: None,
        token: None,
        session: None,
    };
    harness
        .engine
        .report_progress(&harness.me, progress)
        .await
        .unwrap();
    harness.advance(SECOND);
    let round = harness.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!(round.changed, []);
    harness.advance(MILLISECOND);
    let round = harness.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!(
        round.changed.len(),
        1,
        "inactivity after the sleep has no grace period"
    );
}

async fn a_new_sweep_grants_existing_claims_one_grace_period(harness: &Harness) {
    let plan = plan_failing_on_stall(harness, 1).await;
    harness.claim(plan.id).await;
    harness.advance(SLEEP);
    let mut watcher = harness.engine.watcher();
    let round = harness.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!(round.changed, []);
    harness
        .environment
        .set(round.next_at.expect("a next check is scheduled"));
    let round = harness.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!(round.changed.len(), 1);
    assert_eq!(harness.plan_status(plan.id).await.as_str(), "completed");
}

async fn setting_the_clock_back_causes_no_stall(harness: &Harness) {
    let plan = plan_failing_on_stall(harness, 1).await;
    let mut watcher = harness.engine.watcher();
    let began = harness.now();
    harness.advance(SLEEP);
    harness.claim(plan.id).await;
    harness.environment.set(began);
    let round = harness.engine.sweep(&mut watcher).await.unwrap();
    let changed: Vec<PlanId> = round.changed.into_iter().map(|(_, plan)| plan).collect();
    assert_eq!(changed, [plan.id], "the step counts as active now");
    assert_eq!(harness.step_statuses(plan.id).await, ["in_progress"]);
}

async fn terminal_and_deleted_plans_are_never_due(harness: &Harness) {
    let plans = [
        plan_failing_on_stall(harness, 1).await,
        plan_failing_on_stall(harness, 2).await,
        plan_failing_on_stall(harness, 2).await,
    ];
    let [done, abandoned, deleted] = plans.map(|plan| plan.id);
    let step = harness.claim(done).await;
    harness.claim(abandoned).await;
    harness.claim(deleted).await;
    harness.complete(&step, "done").await;
    harness
        .engine
        .abandon_plan(&harness.me, abandoned, None)
        .await
        .unwrap();
    harness
        .engine
        .delete_plan(&harness.me, deleted)
        .await
        .unwrap();
    let mut watcher = harness.engine.watcher();
    let round = harness.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!((round.checked, round.next_at), (0, None));
    assert_eq!(harness.sql("SELECT count(*) FROM due").as_deref(), Ok("0"));
}

async fn the_next_sweep_checks_an_imported_plan(harness: &Harness) {
    let plan = plan_failing_on_stall(harness, 2).await;
    harness.claim(plan.id).await;
    let document = harness.engine.export(&harness.me, plan.id).await.unwrap();
    harness
        .engine
        .delete_plan(&harness.me, plan.id)
        .await
        .unwrap();
    harness.advance(SLEEP);
    harness.engine.import(&harness.me, &document).await.unwrap();
    let mut watcher = harness.engine.watcher();
    let round = harness.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!((round.checked, round.changed.len()), (1, 0));
    harness
        .environment
        .set(round.next_at.expect("a next check is scheduled"));
    assert_eq!(
        harness
            .engine
            .sweep(&mut watcher)
            .await
            .unwrap()
            .changed
            .len(),
        1
    );
}

async fn a_sweep_covers_every_tenant(harness: &Harness) {
    let others = [
        harness.create_tenant("a").await,
        harness.create_tenant("b").await,
    ];
    let mut watcher = harness.engine.watcher();
    let mut expected = Vec::new();
    for tenant in &others {
        let mut draft = harness.draft(1);
        draft.stall_threshold = Some(SECOND);
        let plan = harness.create_for(tenant, draft).await;
        harness
            .engine
            .next_step(tenant, plan.id, None, false)
            .await
            .unwrap();
        expected.push((tenant.tenant.clone(), plan.id));
    }
    harness.advance(SECOND + MILLISECOND);
    let mut round = harness.engine.sweep(&mut watcher).await.unwrap();
    round.changed.sort();
    expected.sort();
    assert_eq!(round.changed, expected);
}

async fn a_sweep_checks_more_plans_than_fit_into_one_batch(harness: &Harness) {
    let mut watcher = harness.engine.watcher();
    let plan = plan_failing_on_stall(harness, 1).await;
    harness.claim(plan.id).await;
    // All of these are due earlier and no longer exist.
    let tenant = &harness.me.tenant;
    let rows: Vec<String> = (1..=300)
        .map(|id| {
            format!(
                "('{tenant}', {}, 1)",
                harness.id_literal(PlanId::from_u128(id))
            )
        })
        .collect();
    let insert = format!("INSERT INTO due VALUES {}", rows.join(", "));
    harness.sql(&insert).unwrap();
    harness.advance(SECOND + MILLISECOND);
    let round = harness.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!((round.checked, round.next_at), (301, None));
    assert_eq!(round.changed, [(tenant.clone(), plan.id)]);
}

on_both_databases![exclusive:
    after_sleep_the_sweep_waits_for_one_grace_period,
    progress_within_the_grace_period_prevents_a_stall,
    a_new_sweep_grants_existing_claims_one_grace_period,
    setting_the_clock_back_causes_no_stall,
    terminal_and_deleted_plans_are_never_due,
    the_next_sweep_checks_an_imported_plan,
    a_sweep_covers_every_tenant,
    a_sweep_checks_more_plans_than_fit_into_one_batch,
];
