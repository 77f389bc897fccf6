//! What every agent wrote down, held against what the others did, and against the trail.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::{Event, StepId};
use onward_store::Entry;

use crate::history::{Hold, Line, Told, What, digest};

pub fn has_trouble(lines: &[Line]) -> bool {
    lines
        .iter()
        .any(|line| matches!(line.what, What::Told(Told::Trouble { .. })))
}

/// An error that is no refusal by a rule would be one of the database, and nobody may see one.
pub fn nobody_saw_an_error(lines: &[Line]) {
    let trouble = |line: &&Line| matches!(line.what, What::Told(Told::Trouble { .. }));
    let seen: Vec<&Line> = lines.iter().filter(trouble).collect();
    assert!(seen.is_empty(), "{seen:#?}");
}

/// The claims and results that were told are those of the trail, each once, in each agent's order.
pub fn agree(lines: &[Line], trail: &[Entry]) {
    let mut claims: BTreeMap<(StepId, u32), (&str, &Hold)> = BTreeMap::new();
    let mut results: BTreeMap<StepId, (&str, &str)> = BTreeMap::new();
    for line in lines {
        let (hold, result) = match &line.what {
            What::Told(Told::Claimed { hold, .. }) => (Some(hold), None),
            What::Told(Told::Completed {
                step, digest, next, ..
            }) => (next.as_ref(), Some((step, digest))),
            What::Ready | What::Asks(_) | What::Told(_) => continue,
        };
        if let Some(hold) = hold {
            let before = claims.insert((hold.step, hold.attempt), (&line.agent, hold));
            assert_eq!(
                before, None,
                "two agents have it, or one has it twice: {line:?}"
            );
        }
        if let Some((step, digest)) = result {
            let before = results.insert(*step, (&line.agent, digest));
            assert_eq!(before, None, "two results were accepted: {line:?}");
        }
    }
    let tokens: BTreeSet<&str> = claims
        .values()
        .map(|(_, hold)| hold.token.as_str())
        .collect();
    assert_eq!(tokens.len(), claims.len(), "a token was given out twice");
    let (mut given, mut accepted) = (BTreeMap::new(), BTreeMap::new());
    for entry in trail {
        let author = entry.author.name.as_str();
        match &entry.event {
            Event::StepStarted { step, claim } => {
                let token = claim.token.as_str();
                given.insert((*step, claim.attempt), (author, token));
            }
            Event::StepCompleted { step, result, .. } => {
                accepted.insert(*step, (author, digest(&**result)));
            }
            _ => {}
        }
    }
    let claims: BTreeMap<_, _> = claims
        .into_iter()
        .map(|(key, (agent, hold))| (key, (agent, hold.token.as_str())))
        .collect();
    assert_eq!(claims, given, "what was told, and what the trail has");
    let results: BTreeMap<_, _> = results
        .into_iter()
        .map(|(step, (agent, digest))| (step, (agent, digest.to_owned())))
        .collect();
    assert_eq!(results, accepted, "what was told, and what the trail has");
    in_order(lines, trail);
}

/// What an agent was told earlier stands earlier in the trail.
fn in_order(lines: &[Line], trail: &[Entry]) {
    let mut given: BTreeMap<&str, u64> = BTreeMap::new();
    let mut accepted: BTreeMap<StepId, u64> = BTreeMap::new();
    for entry in trail {
        match &entry.event {
            Event::StepStarted { claim, .. } => {
                given.insert(claim.token.as_str(), entry.commit_seq);
            }
            Event::StepCompleted { step, .. } => {
                accepted.insert(*step, entry.commit_seq);
            }
            _ => {}
        }
    }
    let mut last: BTreeMap<&str, u64> = BTreeMap::new();
    for line in lines {
        let seq = match &line.what {
            What::Told(Told::Claimed { hold, .. }) => given[hold.token.as_str()],
            What::Told(Told::Completed { step, .. }) => accepted[step],
            What::Ready | What::Asks(_) | What::Told(_) => continue,
        };
        let before = last.insert(&line.agent, seq).unwrap_or(0);
        assert!(
            before < seq,
            "{line:?} is commit {seq}, and came after {before}"
        );
    }
}

/// Prints how many calls there were, and how long they took.
pub fn show(what: &str, lines: &[Line]) {
    let mut micros: Vec<u64> = lines
        .iter()
        .filter(|line| matches!(line.what, What::Told(_)))
        .map(|line| line.micros)
        .collect();
    micros.sort_unstable();
    let at = |percent: usize| micros[(micros.len() - 1) * percent / 100] as f64 / 1000.0;
    println!(
        "{what}: {} calls, {:.1} ms in the middle, {:.1} ms at the 99th of 100, {:.1} ms the longest",
        micros.len(),
        at(50),
        at(99),
        at(100),
    );
}
