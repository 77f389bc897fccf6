//! Moves a whole database to another one, and verifies both: the rows by comparison, the plans by
//! replaying their audit trails.

use onward_store::{Address, Relocation, RowProgress};

use super::verify::{Inconsistency, VerifyReport};
use crate::engine::{Engine, Settings};
use crate::error::Error;

/// Name of the caller that verifies the databases.
const CALLER: &str = "move";

/// The parts of a move, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Replays the audit trails of the source.
    VerifySource,
    /// Copies rows.
    Copy,
    /// Compares the rows of both databases.
    Compare,
    /// Replays the audit trails of the target.
    VerifyTarget,
}

/// Progress of a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The current part.
    pub phase: Phase,
    /// Number of tenants or rows that are done.
    pub done: u64,
    /// Number of all tenants or rows.
    pub total: u64,
}

/// Result of a move.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Relocated {
    /// Number of tenants.
    pub tenants: u64,
    /// Number of rows.
    pub rows: u64,
    /// Number of plans.
    pub plans: u64,
    /// Number of events whose replay was verified.
    pub events: u64,
    /// Inconsistencies of the source, for which nothing was copied, or of the target.
    pub inconsistencies: Vec<Inconsistency>,
    /// The part that found them.
    pub failed: Option<Phase>,
}

/// Copies all data of `source` to the empty database `target`. An interrupted move continues with
/// the same call. The source does not change, and cannot be written until the call returns.
pub async fn relocate(
    source: &Address,
    target: &Address,
    settings: Settings,
    report: &mut (dyn FnMut(Progress) + Send),
) -> Result<Relocated, Error> {
    let settings = Settings {
        keep_schema: true,
        ..settings
    };
    // Opened first: opening may create the tenant `local`.
    let engine = Engine::open(source, settings.clone()).await?;
    let moved = relocate_from(&engine, source, target, report).await;
    engine.close().await;
    let mut moved = moved?;
    if moved.failed.is_some() {
        return Ok(moved);
    }
    let engine = Engine::open(target, settings).await?;
    let verified = verify_all(&engine, Phase::VerifyTarget, report).await;
    engine.close().await;
    let verified = verified?;
    if !verified.inconsistencies.is_empty() {
        moved.failed = Some(Phase::VerifyTarget);
        moved.inconsistencies = verified.inconsistencies;
    }
    Ok(moved)
}

/// Verifies the source, and copies it while no other process can write to it.
async fn relocate_from(
    engine: &Engine,
    source: &Address,
    target: &Address,
    report: &mut (dyn FnMut(Progress) + Send),
) -> Result<Relocated, Error> {
    let mut relocation = Relocation::begin(source, target).await?;
    let verified = verify_all(engine, Phase::VerifySource, report).await?;
    let mut moved = Relocated {
        tenants: u64::try_from(relocation.tenants()).unwrap_or(u64::MAX),
        rows: relocation.rows(),
        plans: verified.plans,
        events: verified.events,
        inconsistencies: verified.inconsistencies,
        failed: None,
    };
    if !moved.inconsistencies.is_empty() {
        moved.failed = Some(Phase::VerifySource);
        return Ok(moved);
    }
    let mut copied = |RowProgress { done, total }| {
        report(Progress {
            phase: Phase::Copy,
            done,
            total,
        })
    };
    relocation.copy(&mut copied).await?;
    let mut compared = |RowProgress { done, total }| {
        report(Progress {
            phase: Phase::Compare,
            done,
            total,
        })
    };
    relocation.compare(&mut compared).await?;
    relocation.finish().await?;
    Ok(moved)
}

/// Verifies all tenants of a database.
async fn verify_all(
    engine: &Engine,
    phase: Phase,
    report: &mut (dyn FnMut(Progress) + Send),
) -> Result<VerifyReport, Error> {
    let tenants = engine.tenants().await?;
    let total = u64::try_from(tenants.len()).unwrap_or(u64::MAX);
    let mut all = VerifyReport::default();
    for (tenant, done) in tenants.iter().zip(1u64..) {
        let caller = engine.operator(&tenant.name, CALLER).await?;
        let verified = engine.verify(&caller).await?;
        all.plans += verified.plans;
        all.events += verified.events;
        all.inconsistencies.extend(verified.inconsistencies);
        report(Progress { phase, done, total });
    }
    Ok(all)
}
