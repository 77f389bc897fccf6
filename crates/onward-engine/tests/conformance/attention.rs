//! What plans need, since when, and to whom they belong.

use std::collections::BTreeMap;
use std::time::Duration;

use onward_core::attention::{DEFAULT_NO_AGENT_AFTER, Word};
use onward_core::budget::Budget;
use onward_core::command::Modification;
use onward_core::event::Decision;
use onward_core::finding::Kind;
use onward_core::{PlanId, Timestamp};
use onward_engine::list::PlanQuery;
use onward_engine::step::{ProgressReport, ReviewDecision};
use onward_engine::{Caller, RequestOrigin};

use crate::harness::Harness;

const MINUTE: Duration = Duration::from_secs(60);
const MILLISECOND: Duration = Duration::from_millis(1);
const STALL: Duration = Duration::from_secs(30 * 60);

async fn attention(harness: &Harness, plan: PlanId) -> (Word, Timestamp) {
    let status = harness.status(plan).await;
    let query = PlanQuery {
        limit: 50,
        finished: true,
        ..PlanQuery::default()
    };
    let page = harness.engine.list_plans(&harness.me, query).await.unwrap();
    let listed = page.plans.iter().find(|one| one.sheet.head.id == plan);
    assert_eq!(listed.map(|one| one.attention), Some(status.attention));
    let counts = harness.engine.count_attention(&harness.me).await.unwrap();
    let stuck = harness.engine.count_stuck(&harness.me).await.unwrap();
    for count in counts {
        assert!(count.word != Word::Stuck || count.plans == stuck as u64);
        let listed = page.plans.iter().map(|one| one.attention.word);
        let listed = listed.filter(|word| *word == count.word).count();
        assert_eq!(count.plans, listed as u64, "{}", count.word);
    }
    (status.attention.word, status.attention.since)
}

async fn the_words_follow_a_plan_from_creation_to_its_end(harness: &Harness) {
    let created_at = harness.now();
    let plan = harness.plan(2).await.id;
    assert_eq!(
        attention(harness, plan).await,
        (Word::NotStarted, created_at)
    );
    harness.advance(DEFAULT_NO_AGENT_AFTER + MILLISECOND);
    assert_eq!(attention(harness, plan).await, (Word::NoAgent, created_at));
    let step = harness.claim(plan).await;
    let claimed_at = harness.now();
    assert_eq!(attention(harness, plan).await, (Word::Working, claimed_at));
    harness.advance(STALL + MILLISECOND);
    // Before any sweep has marked the plan.
    assert_eq!(attention(harness, plan).await, (Word::Stuck, claimed_at));
    let requeue = Modification::RequeueStep { step: step.step };
    harness.modify(plan, requeue).await.unwrap();
    // A user's release does not bring an agent back.
    assert_eq!(attention(harness, plan).await, (Word::NoAgent, claimed_at));
    let step = harness.claim(plan).await;
    harness.advance(MINUTE);
    harness.request_review(&step).await.unwrap();
    let asked_at = harness.now();
    harness.advance(MINUTE);
    assert_eq!(attention(harness, plan).await, (Word::NeedsYou, asked_at));
    let decision = ReviewDecision::new(step.step, Decision::Approve, None);
    let decided = harness.engine.decide_review(&harness.me, decision).await;
    decided.unwrap();
    let decided_at = harness.now();
    assert_eq!(attention(harness, plan).await, (Word::Working, decided_at));
    harness.complete_steps(plan, 1).await;
    assert_eq!(attention(harness, plan).await, (Word::Done, harness.now()));
    let cancelled = harness.plan(1).await.id;
    let abandoned = harness.engine.abandon_plan(&harness.me, cancelled, None);
    abandoned.await.unwrap();
    assert_eq!(attention(harness, cancelled).await.0, Word::Cancelled);
}

async fn the_sweep_does_not_count_as_activity(harness: &Harness) {
    let plan = harness.plan(2).await.id;
    harness.claim(plan).await;
    let acted_at = harness.now();
    let mut watcher = harness.engine.watcher();
    for span in [DEFAULT_NO_AGENT_AFTER, STALL - DEFAULT_NO_AGENT_AFTER] {
        harness.engine.sweep(&mut watcher).await.unwrap();
        harness.advance(span + MILLISECOND);
    }
    harness.engine.sweep(&mut watcher).await.unwrap();
    let status = harness.status(plan).await;
    assert!(status.sheet.updated_at > acted_at, "the sweep marked it");
    assert_eq!(status.sheet.acted_at, acted_at);
    assert_eq!(status.attention.word, Word::Stuck);
    harness.engine.resume_plan(&harness.me, plan).await.unwrap();
    let status = harness.status(plan).await;
    assert_eq!(status.sheet.acted_at, harness.now());
    assert_eq!(
        status.attention.word,
        Word::Stuck,
        "a snooze changes nothing"
    );
}

async fn a_plan_without_an_agent_is_reported_once_per_idle_period(harness: &Harness) {
    let plan = harness.plan(3).await.id;
    let mut watcher = harness.engine.watcher();
    let reported = async |watcher: &mut _| {
        harness.engine.sweep(watcher).await.unwrap();
        let listed = harness.engine.notifications(&harness.me, 100).await;
        let listed = listed.unwrap().into_iter();
        let of_kind = listed.filter(|one| one.finding.kind == Kind::NoAgent);
        of_kind.map(|one| one.finding.since).collect::<Vec<_>>()
    };
    let created_at = harness.now();
    assert_eq!(reported(&mut watcher).await, []);
    harness.advance(DEFAULT_NO_AGENT_AFTER);
    assert_eq!(reported(&mut watcher).await, []);
    harness.advance(MILLISECOND);
    assert_eq!(reported(&mut watcher).await, [created_at]);
    harness.advance(DEFAULT_NO_AGENT_AFTER);
    assert_eq!(reported(&mut watcher).await, [created_at]);
    harness.complete_steps(plan, 1).await;
    let worked_at = harness.now();
    assert_eq!(reported(&mut watcher).await, [created_at]);
    harness.advance(DEFAULT_NO_AGENT_AFTER + MILLISECOND);
    assert_eq!(reported(&mut watcher).await, [worked_at, created_at]);
}

async fn a_plan_has_an_owner_and_a_step_the_note_of_its_claim(harness: &Harness) {
    let caller = Caller {
        name: "token:ana".to_owned(),
        origin: RequestOrigin {
            client: Some("Claude Code 2.1".to_owned()),
            host: Some("ana-mbp".to_owned()),
            directory: Some("~/src/infra".to_owned()),
        },
        ..harness.me.clone()
    };
    let plan = harness.create_for(&caller, harness.draft(1)).await.id;
    let owner = harness.status(plan).await.sheet.owner;
    assert_eq!(
        (owner.person.as_str(), owner.origin),
        ("ana", caller.origin)
    );
    let open = harness.engine.open_plans(&harness.me).await.unwrap();
    assert_eq!(open[0].0.owner.person, "ana");

    let step = harness.claim(plan).await;
    let report = ProgressReport {
        step: step.step,
        note: Some("62 of 212".to_owned()),
        percent: Some(29.0),
        token: None,
        session: None,
    };
    harness.advance(MINUTE);
    let reported = harness.engine.report_progress(&harness.me, report);
    reported.await.unwrap();
    let line = harness.status(plan).await.current.unwrap();
    let note = line.note.unwrap();
    let read = (note.text.as_deref(), note.percent, note.at);
    assert_eq!(read, (Some("62 of 212"), Some(29.0), harness.now()));
    harness.advance(STALL + MILLISECOND);
    harness.take_over(plan).await;
    let line = harness.status(plan).await.current.unwrap();
    assert_eq!(line.note, None, "the note of an earlier claim");
}

async fn the_totals_count_the_plans_of_all_tenants(harness: &Harness) {
    let (engine, me) = (&harness.engine, &harness.me);
    let other = harness.create_tenant("other").await;
    let [stuck, cancelled, done, asking] = [
        harness.plan(2).await.id,
        harness.plan(1).await.id,
        harness.plan(1).await.id,
        harness.plan(1).await.id,
    ];
    harness.claim(stuck).await;
    engine.abandon_plan(me, cancelled, None).await.unwrap();
    harness.complete_steps(done, 1).await;
    let step = harness.claim(asking).await;
    harness.request_review(&step).await.unwrap();
    let mut limited = harness.draft(2);
    limited.budget = Some(Budget {
        max_steps: Some(1),
        ..Budget::default()
    });
    let limited = engine.create_plan(me, limited, None).await.unwrap();
    harness.complete_steps(limited.created.plan, 1).await;
    for _ in 0..2 {
        let created = engine.create_plan(&other, harness.draft(1), None);
        created.await.unwrap();
    }
    for limit in [MINUTE, DEFAULT_NO_AGENT_AFTER, STALL] {
        harness.advance(limit + MILLISECOND);
        // Other tests have left plans in this database.
        let (mut words, mut statuses) = (BTreeMap::new(), BTreeMap::new());
        for tenant in engine.tenants().await.unwrap() {
            let operator = engine.operator(&tenant.name, "test").await.unwrap();
            for count in engine.count_attention(&operator).await.unwrap() {
                *words.entry(count.word).or_default() += count.plans;
            }
            for count in engine.count_plans(&operator).await.unwrap() {
                *statuses.entry(count.status.as_str()).or_default() += count.plans;
            }
        }
        let totals = engine.totals().await.unwrap();
        let counted = totals.attention.iter();
        let counted: BTreeMap<Word, u64> = counted.map(|count| (count.word, count.plans)).collect();
        assert_eq!(counted, words);
        let counted = totals.statuses.iter().filter(|(_, plans)| *plans > 0);
        let counted: BTreeMap<&str, u64> = counted
            .map(|(status, plans)| (status.as_str(), *plans))
            .collect();
        assert_eq!(counted, statuses);
        assert!(totals.bytes > 0);
    }
    let words = engine.totals().await.unwrap().attention;
    let count = |word| words.iter().find(|count| count.word == word).unwrap().plans;
    for (word, plans) in [
        (Word::Stuck, 2),
        (Word::NeedsYou, 1),
        (Word::NoAgent, 2),
        (Word::Cancelled, 1),
    ] {
        assert!(count(word) >= plans, "{word}");
    }
}

crate::on_both_databases![
    the_words_follow_a_plan_from_creation_to_its_end,
    a_plan_has_an_owner_and_a_step_the_note_of_its_claim,
];

/// The sweep covers all tenants of a database.
mod exclusive {
    use super::{
        a_plan_without_an_agent_is_reported_once_per_idle_period,
        the_sweep_does_not_count_as_activity, the_totals_count_the_plans_of_all_tenants,
    };
    crate::on_both_databases![exclusive:
        the_sweep_does_not_count_as_activity,
        a_plan_without_an_agent_is_reported_once_per_idle_period,
        the_totals_count_the_plans_of_all_tenants,
    ];
}
