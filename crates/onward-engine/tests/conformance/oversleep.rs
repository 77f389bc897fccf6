//! The sweep's own sleep convicts nobody; and what is over is never looked at.

use std::time::Duration;

use onward_core::PlanId;
use onward_core::policy::OnStall;
use onward_engine::step::Progress;

use crate::desk::Desk;
use crate::on_both_databases;
use crate::verbs::Made;

const SECOND: Duration = Duration::from_secs(1);
const MOMENT: Duration = Duration::from_millis(1);
const NIGHT: Duration = Duration::from_secs(8 * 3600);
/// How long a watcher that overslept waits: the policy's own default.
const GRACE: Duration = Duration::from_secs(60);

async fn failing(desk: &Desk, steps: u32) -> Made {
    let mut draft = desk.draft(steps);
    draft.stall_threshold = Some(SECOND);
    draft.on_stall = OnStall::Fail;
    desk.create(draft).await
}

async fn a_sweep_that_overslept_waits_one_grace_period(desk: &Desk) {
    let plan = failing(desk, 2).await;
    let mut watcher = desk.engine.watcher();
    desk.take(plan.id).await;
    desk.engine.sweep(&mut watcher).await.unwrap();
    desk.advance(NIGHT);
    let round = desk.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!(round.acted_on, []);
    let woke = desk.now();
    let ends = woke.checked_add(GRACE).unwrap();
    assert_eq!(round.next_at, Some(ends.next()));
    desk.world.set(ends);
    let round = desk.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!(round.acted_on, []);
    desk.advance(MOMENT);
    let round = desk.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!(round.acted_on.len(), 1);
    assert_eq!(desk.statuses(plan.id).await, ["failed", "pending"]);
}

async fn whoever_shows_life_in_the_grace_period_is_spared(desk: &Desk) {
    let plan = failing(desk, 1).await;
    let mut watcher = desk.engine.watcher();
    let step = desk.take(plan.id).await;
    desk.engine.sweep(&mut watcher).await.unwrap();
    desk.advance(NIGHT);
    desk.engine.sweep(&mut watcher).await.unwrap();
    desk.advance(GRACE);
    let alive = Progress {
        step: step.step,
        note: None,
        percent: None,
        token: None,
        session: None,
    };
    desk.engine.report_progress(&desk.me, alive).await.unwrap();
    desk.advance(SECOND);
    let round = desk.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!(round.acted_on, []);
    desk.advance(MOMENT);
    let round = desk.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!(
        round.acted_on.len(),
        1,
        "silence after the sleep gets no grace"
    );
}

async fn a_sweep_that_begins_gives_those_before_it_one_grace_period(desk: &Desk) {
    let plan = failing(desk, 1).await;
    desk.take(plan.id).await;
    desk.advance(NIGHT);
    let mut watcher = desk.engine.watcher();
    let round = desk.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!(round.acted_on, []);
    desk.world.set(round.next_at.expect("it looks again"));
    let round = desk.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!(round.acted_on.len(), 1);
    assert_eq!(desk.plan_status(plan.id).await.as_str(), "completed");
}

async fn a_clock_that_is_set_back_convicts_nobody(desk: &Desk) {
    let plan = failing(desk, 1).await;
    let mut watcher = desk.engine.watcher();
    let began = desk.now();
    desk.advance(NIGHT);
    desk.take(plan.id).await;
    desk.world.set(began);
    let round = desk.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!(round.acted_on, []);
    assert_eq!(desk.statuses(plan.id).await, ["in_progress"]);
}

async fn a_plan_that_is_over_or_gone_is_never_due(desk: &Desk) {
    let plans = [
        failing(desk, 1).await,
        failing(desk, 2).await,
        failing(desk, 2).await,
    ];
    let [done, given_up, gone] = plans.map(|plan| plan.id);
    let step = desk.take(done).await;
    desk.take(given_up).await;
    desk.take(gone).await;
    desk.hand_in(&step, "done").await;
    desk.engine
        .abandon_plan(&desk.me, given_up, None)
        .await
        .unwrap();
    desk.engine.delete_plan(&desk.me, gone).await.unwrap();
    let mut watcher = desk.engine.watcher();
    let round = desk.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!((round.looked_at, round.next_at), (0, None));
    assert_eq!(desk.sql("SELECT count(*) FROM due").as_deref(), Ok("0"));
}

async fn an_imported_plan_is_looked_at_by_the_next_sweep(desk: &Desk) {
    let plan = failing(desk, 2).await;
    desk.take(plan.id).await;
    let document = desk.engine.export(&desk.me, plan.id).await.unwrap();
    desk.engine.delete_plan(&desk.me, plan.id).await.unwrap();
    desk.advance(NIGHT);
    desk.engine.import(&desk.me, &document).await.unwrap();
    let mut watcher = desk.engine.watcher();
    let round = desk.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!((round.looked_at, round.acted_on.len()), (1, 0));
    desk.world.set(round.next_at.expect("it looks again"));
    assert_eq!(
        desk.engine
            .sweep(&mut watcher)
            .await
            .unwrap()
            .acted_on
            .len(),
        1
    );
}

async fn a_sweep_looks_after_every_tenant(desk: &Desk) {
    let others = [desk.tenant("a").await, desk.tenant("b").await];
    let mut watcher = desk.engine.watcher();
    let mut expected = Vec::new();
    for tenant in &others {
        let mut draft = desk.draft(1);
        draft.stall_threshold = Some(SECOND);
        let plan = desk.create_for(tenant, draft).await;
        desk.engine
            .next_step(tenant, plan.id, None, false)
            .await
            .unwrap();
        expected.push((tenant.tenant.clone(), plan.id));
    }
    desk.advance(SECOND + MOMENT);
    let mut round = desk.engine.sweep(&mut watcher).await.unwrap();
    round.acted_on.sort();
    expected.sort();
    assert_eq!(round.acted_on, expected);
}

async fn more_plans_than_are_looked_up_at_once_are_all_looked_at(desk: &Desk) {
    let mut watcher = desk.engine.watcher();
    let plan = failing(desk, 1).await;
    desk.take(plan.id).await;
    // All of these are due before it, and gone.
    let tenant = &desk.me.tenant;
    let rows: Vec<String> = (1..=300)
        .map(|id| format!("('{tenant}', {}, 1)", desk.literal(PlanId::from_u128(id))))
        .collect();
    let insert = format!("INSERT INTO due VALUES {}", rows.join(", "));
    desk.sql(&insert).unwrap();
    desk.advance(SECOND + MOMENT);
    let round = desk.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!((round.looked_at, round.next_at), (301, None));
    assert_eq!(round.acted_on, [(tenant.clone(), plan.id)]);
}

on_both_databases![alone:
    a_sweep_that_overslept_waits_one_grace_period,
    whoever_shows_life_in_the_grace_period_is_spared,
    a_sweep_that_begins_gives_those_before_it_one_grace_period,
    a_clock_that_is_set_back_convicts_nobody,
    a_plan_that_is_over_or_gone_is_never_due,
    an_imported_plan_is_looked_at_by_the_next_sweep,
    a_sweep_looks_after_every_tenant,
    more_plans_than_are_looked_up_at_once_are_all_looked_at,
];
