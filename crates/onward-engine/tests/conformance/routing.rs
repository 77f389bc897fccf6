//! Projects, labels and priorities: the order in which steps are assigned, in a plan and in a project.

use std::collections::BTreeSet;
use std::time::Duration;

use onward_core::command::{CreatePlan, Modification, PlanUpdate, StepUpdate};
use onward_core::event::Decision;
use onward_core::{PlanId, StepId, Timestamp};
use onward_engine::list::PlanQuery;
use onward_engine::next_step::{AssignedStep, NextStep, Worker};
use onward_engine::step::ReviewDecision;
use onward_engine::submit::Submission;

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{code, document, submission_for};

const PROJECT: &str = "site";

fn labels(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn worker(names: &[&str]) -> Worker {
    Worker {
        labels: Some(labels(names)),
        ..Worker::default()
    }
}

/// A plan of the project.
fn draft(harness: &Harness, steps: u32, priority: u8) -> CreatePlan {
    let mut draft = harness.draft(steps);
    draft.routing.project_key = Some(PROJECT.to_owned());
    draft.routing.priority = priority;
    draft
}

fn started(next: NextStep) -> Option<AssignedStep> {
    if let NextStep::Started(step) = next {
        Some(*step)
    } else {
        None
    }
}

async fn claim_in_project(harness: &Harness, worker: Worker) -> Option<AssignedStep> {
    let next = harness
        .engine
        .next_step_of_project(&harness.me, PROJECT, worker);
    started(next.await.unwrap())
}

/// Claims all steps of the project that any worker can claim.
async fn claim_all(harness: &Harness) -> Vec<StepId> {
    let mut claimed = Vec::new();
    while let Some(step) = claim_in_project(harness, Worker::default()).await {
        claimed.push(step.step);
    }
    claimed
}

async fn steps_of_a_plan_are_assigned_by_priority_and_order(harness: &Harness) {
    let mut draft = harness.draft(4);
    draft.steps[1].priority = 9;
    draft.steps[3].priority = 9;
    draft.steps[2].priority = 0;
    let plan = harness.create(draft).await;
    let update = StepUpdate {
        priority: Some(6),
        ..StepUpdate::default()
    };
    let step = plan.steps[2];
    let change = Modification::UpdateStep { step, update };
    harness.modify(plan.id, change).await.unwrap();
    let mut orders = Vec::new();
    for _ in 0..4 {
        orders.push(harness.claim(plan.id).await.order);
    }
    assert_eq!(orders, [2, 4, 3, 1]);
}

async fn a_worker_gets_only_steps_whose_labels_it_offers(harness: &Harness) {
    let mut draft = harness.draft(4);
    draft.steps[0].labels = labels(&["linux", "gpu"]);
    draft.steps[1].labels = labels(&["gpu"]);
    draft.steps[2].labels = labels(&["arm"]);
    let plan = harness.create(draft).await;
    let next = |worker: Worker| harness.engine.next_step_for(&harness.me, plan.id, worker);
    let order = |next: NextStep| started(next).map(|step| step.order);
    assert_eq!(order(next(worker(&["gpu"])).await.unwrap()), Some(2));
    assert_eq!(order(next(worker(&[])).await.unwrap()), Some(4));
    assert_eq!(order(next(worker(&[])).await.unwrap()), None);
    let all = worker(&["gpu", "linux", "windows"]);
    assert_eq!(order(next(all.clone()).await.unwrap()), Some(1));
    assert_eq!(order(next(all).await.unwrap()), None);
    assert_eq!(order(next(Worker::default()).await.unwrap()), Some(3));
}

async fn claim_next_assigns_no_step_with_other_labels(harness: &Harness) {
    let mut draft = harness.draft(4);
    draft.steps[1].labels = labels(&["gpu"]);
    draft.steps[3].labels = labels(&["gpu"]);
    let plan = harness.create(draft).await;
    let step = harness.claim(plan.id).await;
    let submission = |step: &AssignedStep| Submission {
        claim_next: true,
        ..submission_for(step, "done")
    };
    let response = harness.submit(submission(&step)).await.unwrap();
    let next = response.next_step.clone().and_then(started).unwrap();
    assert_eq!(next.order, 3);
    // A repeated submission returns the same step.
    let again = harness.submit(submission(&step)).await.unwrap();
    assert_eq!(again.next_step, response.next_step);
    let response = harness.submit(submission(&next)).await.unwrap();
    assert!(
        matches!(
            response.next_step,
            Some(NextStep::NoPendingSteps { blocked: 0, .. })
        ),
        "{response:?}"
    );
    let step = harness.claim(plan.id).await;
    let response = harness.submit(submission(&step)).await.unwrap();
    let next = response.next_step.and_then(started).unwrap();
    assert_eq!(next.order, 4);
}

async fn a_project_assigns_by_priority_age_and_order(harness: &Harness) {
    let mut old = draft(harness, 2, 5);
    old.steps[1].priority = 7;
    let old = harness.create(old).await;
    harness.advance(Duration::from_secs(1));
    let new = harness.create(draft(harness, 2, 5)).await;
    let urgent = harness.create(draft(harness, 1, 6)).await;
    let other = harness.plan(1).await;
    let expected = [
        urgent.steps[0],
        old.steps[1],
        old.steps[0],
        new.steps[0],
        new.steps[1],
    ];
    assert_eq!(claim_all(harness).await, expected);
    assert_eq!(harness.step_statuses(other.id).await, ["pending"]);
}

async fn a_project_assigns_by_labels(harness: &Harness) {
    let mut first = draft(harness, 2, 9);
    first.steps[0].labels = labels(&["gpu"]);
    first.steps[1].labels = labels(&["gpu", "linux"]);
    let first = harness.create(first).await;
    let second = harness.create(draft(harness, 1, 1)).await;
    let claim = async |names: &[&str]| {
        let step = claim_in_project(harness, worker(names)).await;
        step.map(|step| step.step)
    };
    assert_eq!(claim(&["linux"]).await, Some(second.steps[0]));
    assert_eq!(claim(&["linux"]).await, None);
    assert_eq!(claim(&["linux", "gpu"]).await, Some(first.steps[0]));
    assert_eq!(claim(&["gpu"]).await, None);
    assert_eq!(claim(&["gpu", "linux"]).await, Some(first.steps[1]));
}

async fn dependencies_requeues_and_new_steps_reach_the_queue(harness: &Harness) {
    let mut plan = draft(harness, 2, 5);
    plan.steps[1].depends_on = vec![1];
    let plan = harness.create(plan).await;
    let step = claim_in_project(harness, Worker::default()).await.unwrap();
    assert!(claim_in_project(harness, Worker::default()).await.is_none());
    let requeue = Modification::RequeueStep { step: step.step };
    harness.modify(plan.id, requeue).await.unwrap();
    let step = claim_in_project(harness, Worker::default()).await.unwrap();
    assert_eq!((step.order, step.attempt), (1, 2));
    harness.complete(&step, "done").await;
    let add = Modification::AddSteps {
        steps: harness.steps(1),
        insert_after: None,
    };
    harness.modify(plan.id, add).await.unwrap();
    for order in [2, 3] {
        let step = claim_in_project(harness, Worker::default()).await.unwrap();
        assert_eq!(step.order, order);
    }
}

async fn a_plan_that_awaits_review_does_not_block_the_project(harness: &Harness) {
    let first = harness.create(draft(harness, 3, 9)).await;
    let second = harness.create(draft(harness, 1, 1)).await;
    let step = claim_in_project(harness, Worker::default()).await.unwrap();
    assert_eq!(step.plan, first.id);
    harness.request_review(&step).await.unwrap();
    assert_eq!(claim_all(harness).await, second.steps);
    let decision = ReviewDecision::new(step.step, Decision::Approve, None);
    let decided = harness.engine.decide_review(&harness.me, decision);
    decided.await.unwrap();
    assert_eq!(claim_all(harness).await, first.steps[1..]);
}

async fn an_ended_plan_leaves_the_queue(harness: &Harness) {
    let plan = harness.create(draft(harness, 3, 5)).await;
    let abandoned = harness.engine.abandon_plan(&harness.me, plan.id, None);
    abandoned.await.unwrap();
    assert_eq!(claim_all(harness).await, []);
    let deleted = harness.create(draft(harness, 1, 5)).await;
    let delete = harness.engine.delete_plan(&harness.me, deleted.id);
    delete.await.unwrap();
    assert_eq!(claim_all(harness).await, []);
}

fn update(project_key: &str, priority: u8) -> Modification {
    Modification::UpdatePlan {
        update: PlanUpdate {
            project_key: Some(project_key.to_owned()),
            labels: Some(labels(&["urgent", "web"])),
            priority: Some(priority),
        },
    }
}

async fn a_plan_moves_to_another_project_and_priority(harness: &Harness) {
    let first = harness.create(draft(harness, 1, 5)).await;
    let second = harness.plan(1).await;
    let modified = harness.modify(second.id, update(PROJECT, 6)).await.unwrap();
    assert_eq!(modified.head.routing.labels, labels(&["urgent", "web"]));
    harness.modify(first.id, update("other", 9)).await.unwrap();
    assert_eq!(claim_all(harness).await, second.steps);
    harness.modify(first.id, update(PROJECT, 0)).await.unwrap();
    assert_eq!(claim_all(harness).await, first.steps);
    harness.modify(first.id, update("", 0)).await.unwrap();
    let sheet = harness.engine.sheet(&harness.me, first.id).await.unwrap();
    assert_eq!(sheet.head.routing.project_key, None);
    for change in [update(&"x".repeat(101), 5), update(PROJECT, 10)] {
        let rejected = harness.modify(first.id, change).await;
        assert_eq!(code(rejected), "invalid_input");
    }
}

async fn an_imported_plan_is_in_the_queue(harness: &Harness) {
    let mut plan = draft(harness, 2, 7);
    plan.steps[0].labels = labels(&["gpu"]);
    plan.routing.labels = labels(&["web", "urgent", "web"]);
    let plan = harness.create(plan).await;
    let exported = document(&harness.engine, &harness.me, plan.id).await;
    assert_eq!(
        exported["plan"]["labels"],
        serde_json::json!(["urgent", "web"])
    );
    let deleted = harness.engine.delete_plan(&harness.me, plan.id);
    deleted.await.unwrap();
    harness.engine.import(&harness.me, &exported).await.unwrap();
    let again = document(&harness.engine, &harness.me, plan.id).await;
    assert_eq!(again, exported);
    let step = claim_in_project(harness, worker(&[])).await.unwrap();
    assert_eq!(step.step, plan.steps[1]);
    assert_eq!(claim_all(harness).await, [plan.steps[0]]);
}

async fn concurrent_workers_claim_each_step_once(harness: &Harness) {
    const PLANS: usize = 4;
    const STEPS: u32 = 5;
    for _ in 0..PLANS {
        harness.create(draft(harness, STEPS, 5)).await;
    }
    let workers: Vec<_> = (0..6)
        .map(|_| {
            let (engine, me) = (harness.engine.clone(), harness.me.clone());
            tokio::spawn(async move {
                let mut claimed = Vec::new();
                loop {
                    let next = engine.next_step_of_project(&me, PROJECT, Worker::default());
                    let Some(step) = started(next.await.unwrap()) else {
                        return claimed;
                    };
                    claimed.push(step.step);
                }
            })
        })
        .collect();
    let mut claimed = Vec::new();
    for worker in workers {
        claimed.extend(worker.await.unwrap());
    }
    let unique: BTreeSet<StepId> = claimed.iter().copied().collect();
    assert_eq!(claimed.len(), unique.len());
    assert_eq!(unique.len(), PLANS * usize::try_from(STEPS).unwrap());
}

async fn lists_filter_by_project_label_owner_and_time(harness: &Harness) {
    let mut first = draft(harness, 1, 5);
    first.routing.labels = labels(&["web"]);
    let first = harness.create(first).await;
    harness.advance(Duration::from_secs(60));
    let since = harness.now();
    let second = harness.create(draft(harness, 1, 5)).await;
    let third = harness.plan(1).await;
    let list = async |change: &dyn Fn(&mut PlanQuery)| -> Vec<PlanId> {
        let mut query = PlanQuery {
            limit: 10,
            ..PlanQuery::default()
        };
        change(&mut query);
        let page = harness.engine.list_plans(&harness.me, query).await.unwrap();
        let mut ids: Vec<PlanId> = page.plans.iter().map(|plan| plan.sheet.head.id).collect();
        ids.sort();
        ids
    };
    let sorted = |ids: &[PlanId]| {
        let mut ids = ids.to_vec();
        ids.sort();
        ids
    };
    let in_project = list(&|query| query.project_key = Some(PROJECT.to_owned())).await;
    assert_eq!(in_project, sorted(&[first.id, second.id]));
    let labelled = list(&|query| query.label = Some("web".to_owned())).await;
    assert_eq!(labelled, [first.id]);
    let recent = list(&|query| query.since = Some(since)).await;
    assert_eq!(recent, sorted(&[second.id, third.id]));
    let before = Timestamp::from_millis(0);
    let both = list(&|query| {
        query.since = Some(before);
        query.project_key = Some(PROJECT.to_owned());
        query.text = Some("tides".to_owned());
    })
    .await;
    assert_eq!(both, sorted(&[first.id, second.id]));
    let sheet = harness.engine.sheet(&harness.me, third.id).await.unwrap();
    let own = list(&|query| query.owner = Some(sheet.owner.person.clone())).await;
    assert_eq!(own.len(), 3);
    let none = list(&|query| query.owner = Some("another person".to_owned())).await;
    assert_eq!(none, []);
}

on_both_databases!(
    steps_of_a_plan_are_assigned_by_priority_and_order,
    a_worker_gets_only_steps_whose_labels_it_offers,
    claim_next_assigns_no_step_with_other_labels,
    a_project_assigns_by_priority_age_and_order,
    a_project_assigns_by_labels,
    dependencies_requeues_and_new_steps_reach_the_queue,
    a_plan_that_awaits_review_does_not_block_the_project,
    an_ended_plan_leaves_the_queue,
    a_plan_moves_to_another_project_and_priority,
    an_imported_plan_is_in_the_queue,
    concurrent_workers_claim_each_step_once,
    lists_filter_by_project_label_owner_and_time,
);
