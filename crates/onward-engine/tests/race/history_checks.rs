//! Checks the histories of all agents against each other and against the audit trail.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::{Event, PlanId, StepId};
use onward_store::Entry;

use crate::agents::history::{Claim, Record, RecordKind, Response, digest};

pub fn has_failure(records: &[Record]) -> bool {
    records.iter().any(Record::is_failure)
}

/// No call failed. Calls rejected by a rule are not failures.
pub fn assert_no_failures(records: &[Record]) {
    let failures: Vec<&Record> = records
        .iter()
        .filter(|record| record.is_failure())
        .collect();
    assert!(failures.is_empty(), "{failures:#?}");
}

/// The claims and results of one plan.
pub fn of_plan(records: &[Record], plan: PlanId) -> Vec<Record> {
    let is_own = |record: &&Record| match &record.kind {
        RecordKind::Response(
            Response::Claimed { plan: other, .. } | Response::Completed { plan: other, .. },
        ) => *other == plan,
        RecordKind::Ready | RecordKind::Call(_) | RecordKind::Response(_) => false,
    };
    records.iter().filter(is_own).cloned().collect()
}

/// The acknowledged claims and results are those of the audit trail, each once, and in order.
pub fn assert_matches_audit_trail(records: &[Record], entries: &[Entry]) {
    let mut claims: BTreeMap<(StepId, u32), (&str, &Claim)> = BTreeMap::new();
    let mut results: BTreeMap<StepId, (&str, &str)> = BTreeMap::new();
    for record in records {
        let (claim, result) = match &record.kind {
            RecordKind::Response(Response::Claimed { claim, .. }) => (Some(claim), None),
            RecordKind::Response(Response::Completed {
                step, digest, next, ..
            }) => (next.as_ref(), Some((step, digest))),
            RecordKind::Ready | RecordKind::Call(_) | RecordKind::Response(_) => continue,
        };
        if let Some(claim) = claim {
            let previous = claims.insert((claim.step, claim.attempt), (&record.agent, claim));
            assert_eq!(previous, None, "a step was claimed twice: {record:?}");
        }
        if let Some((step, digest)) = result {
            let previous = results.insert(*step, (&record.agent, digest));
            assert_eq!(previous, None, "two results were accepted: {record:?}");
        }
    }
    let tokens: BTreeSet<&str> = claims
        .values()
        .map(|(_, claim)| claim.token.as_str())
        .collect();
    assert_eq!(tokens.len(), claims.len(), "a token was issued twice");
    let (mut started, mut completed) = (BTreeMap::new(), BTreeMap::new());
    for entry in entries {
        let author = entry.author.name.as_str();
        match &entry.event {
            Event::StepStarted { step, claim } => {
                let token = claim.token.as_str();
                started.insert((*step, claim.attempt), (author, token));
            }
            Event::StepCompleted { step, result, .. } => {
                completed.insert(*step, (author, digest(&**result)));
            }
            _ => {}
        }
    }
    let claims: BTreeMap<_, _> = claims
        .into_iter()
        .map(|(key, (agent, claim))| (key, (agent, claim.token.as_str())))
        .collect();
    assert_eq!(claims, started, "claims in responses and audit trail");
    let results: BTreeMap<_, _> = results
        .into_iter()
        .map(|(step, (agent, digest))| (step, (agent, digest.to_owned())))
        .collect();
    assert_eq!(results, completed, "results in responses and audit trail");
    assert_commit_order(records, entries);
}

/// Each agent received its responses in commit order.
fn assert_commit_order(records: &[Record], entries: &[Entry]) {
    let mut started: BTreeMap<&str, u64> = BTreeMap::new();
    let mut completed: BTreeMap<StepId, u64> = BTreeMap::new();
    for entry in entries {
        match &entry.event {
            Event::StepStarted { claim, .. } => {
                started.insert(claim.token.as_str(), entry.commit_seq);
            }
            Event::StepCompleted { step, .. } => {
                completed.insert(*step, entry.commit_seq);
            }
            _ => {}
        }
    }
    let mut last: BTreeMap<&str, u64> = BTreeMap::new();
    for record in records {
        let seq = match &record.kind {
            RecordKind::Response(Response::Claimed { claim, .. }) => started[claim.token.as_str()],
            RecordKind::Response(Response::Completed { step, .. }) => completed[step],
            RecordKind::Ready | RecordKind::Call(_) | RecordKind::Response(_) => continue,
        };
        let previous = last.insert(&record.agent, seq).unwrap_or(0);
        assert!(
            previous < seq,
            "{record:?} is commit {seq}, but followed commit {previous}"
        );
    }
}

/// Prints the number of calls and their latencies.
pub fn print_latencies(label: &str, records: &[Record]) {
    let mut micros: Vec<u64> = records
        .iter()
        .filter(|record| record.is_response())
        .map(|record| record.micros)
        .collect();
    micros.sort_unstable();
    let percentile = |percent: usize| micros[(micros.len() - 1) * percent / 100] as f64 / 1000.0;
    println!(
        "{label}: {} calls, p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms",
        micros.len(),
        percentile(50),
        percentile(99),
        percentile(100),
    );
}
