//! `onward doctor`: checks the installation without changing it. Only the time of the last write
//! check is stored.
//!
//! A missing database is not a problem, because the next command creates it; an outdated schema is
//! one. The exit code is 1 if a check failed, or 5 if the database is unusable.

mod clock;
mod hooks;
mod nodes;
mod readiness;
mod vector_search;
mod versions;

use std::path::PathBuf;

use clap::Args;
use onward_core::Timestamp;
use onward_engine::caller::LOCAL;
use onward_engine::engine::Settings;
use onward_engine::list::PlanQuery;
use onward_engine::{Address, Caller, Delivery, Engine, Error, Notice, schema, store};
use serde::Serialize;

use super::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::{Output, Tone, format};

const NOTIFICATIONS: &str = "notifications";
/// The number of recent notifications to check.
const MAX_NOTIFICATIONS: u32 = 50;

/// Check the installation and verify every plan against its audit trail
///
/// Checks the configuration, agent hooks, database, file permissions, schema, plans, search index,
/// clock, versions in use and notifications.
#[derive(Args)]
pub(crate) struct Doctor {}

/// The result of one check.
#[derive(Serialize)]
struct Check {
    check: &'static str,
    ok: bool,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

#[derive(Serialize)]
struct Report<'a> {
    ok: bool,
    checks: &'a [Check],
}

impl Check {
    fn passed(check: &'static str, message: impl Into<String>) -> Self {
        Self {
            check,
            ok: true,
            message: message.into(),
            hint: None,
        }
    }

    fn failed(check: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            check,
            ok: false,
            message: message.into(),
            hint: Some(hint.into()),
        }
    }
}

pub(super) async fn run(cx: &Context) -> Result {
    let mut checks = vec![configuration(cx)];
    hooks::check(&mut checks);
    checks.extend(check_processes());
    let exit = check_database(cx, &mut checks).await;
    let ok = checks.iter().all(|check| check.ok);
    if cx.output.json {
        let checks = &checks;
        cx.output.print_json(&Report { ok, checks })?;
    } else {
        cx.output.print(&render(&checks, cx.output))?;
        for hint in checks.iter().filter_map(|check| check.hint.as_ref()) {
            cx.output.note(&format!("hint: {}", format::sanitize(hint)));
        }
    }
    let usable = exit == Exit::Done;
    Ok(if usable && !ok { Exit::Failed } else { exit })
}

/// A line per check; on a terminal, long messages are wrapped.
fn render(checks: &[Check], output: Output) -> String {
    let width =
        |text: fn(&Check) -> &'static str| checks.iter().map(move |check| text(check).len());
    let label = |check: &Check| if check.ok { "ok" } else { "FAIL" };
    let labels = width(label).max().unwrap_or(0);
    let names = width(|check| check.check).max().unwrap_or(0);
    let indent = labels + names + 4;
    let mut text = String::new();
    for check in checks {
        let tone = if check.ok { Tone::Good } else { Tone::Alert };
        let padding = " ".repeat(labels - label(check).len());
        let label = output.paint(Some(tone), label(check));
        let message = format::sanitize_line(&check.message);
        let lines = match output.width() {
            Some(columns) => format::wrapped(&message, columns.saturating_sub(indent)),
            None => vec![message],
        };
        let lines = lines.join(&format!("\n{}", " ".repeat(indent)));
        text.push_str(&format!(
            "{label}{padding}  {:<names$}  {lines}\n",
            check.check
        ));
    }
    text
}

fn configuration(cx: &Context) -> Check {
    let files: Vec<String> = cx
        .config
        .files
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    Check::passed(
        "configuration",
        if files.is_empty() {
            "no file; using defaults, environment and flags".to_owned()
        } else {
            files.join(", ")
        },
    )
}

/// Reports a system on which the exit of a process cannot be detected.
fn check_processes() -> Option<Check> {
    let message = "this system does not show the state of processes: a tool call whose process exits \
                   is interrupted at its timeout";
    (!onward_engine::machine::detects_exits()).then(|| Check::passed("processes", message))
}

/// Checks the database. Returns `Done` if it is usable, even if a check failed.
async fn check_database(cx: &Context, checks: &mut Vec<Check>) -> Exit {
    let address = &cx.config.database;
    let name = format!("{} ({})", address, cx.config.settings.source("database"));
    if let Address::File(path) = address
        && !path.exists()
    {
        let message = format!("{name}: does not exist yet; the next command creates it");
        checks.push(Check::passed("database", message));
        return Exit::Done;
    }
    let (found, known) = match schema(address).await {
        Ok(versions) => versions,
        Err(error) => return unusable("database", error.into(), checks),
    };
    checks.push(Check::passed("database", name));
    let files = address.files();
    if !files.is_empty() {
        checks.extend(check_permissions(&files));
    }
    if found != known {
        let error = if found > known {
            store::Error::Newer { found, known }
        } else {
            store::Error::Older { found, known }
        };
        return unusable("schema", error.into(), checks);
    }
    checks.push(Check::passed("schema", format!("version {found}")));
    let settings = Settings {
        keep_schema: true,
        ..super::database::settings(cx)
    };
    let engine = match Engine::open(address, settings).await {
        Ok(engine) => engine,
        Err(error) => return unusable("database", error, checks),
    };
    cx.opened.replace(Some(engine.clone()));
    let checked = async {
        let newest = check_plans(&engine, checks).await?;
        checks.push(clock::check(&engine, newest));
        checks.extend(readiness::check(address, &engine).await?);
        checks.push(versions::check(&engine).await?);
        checks.extend(nodes::check(address, &engine).await?);
        checks.extend(vector_search::check(&engine).await?);
        check_notifications(cx, &engine, checks).await
    };
    match checked.await {
        Ok(()) => Exit::Done,
        Err(error) => unusable("plans", error, checks),
    }
}

fn unusable(check: &'static str, error: Error, checks: &mut Vec<Check>) -> Exit {
    let failure = Failure::from(error);
    checks.push(Check::failed(check, failure.message, failure.hint));
    failure.exit
}

/// Replays the audit trail of every plan of every tenant, and checks the search index. Returns the
/// time of the last update.
async fn check_plans(
    engine: &Engine,
    checks: &mut Vec<Check>,
) -> std::result::Result<Option<Timestamp>, Error> {
    let mut newest = None;
    for tenant in engine.tenants().await? {
        let caller = match &*tenant.name {
            LOCAL => Caller::local("doctor"),
            other => engine.operator(other, "doctor").await?,
        };
        let query = PlanQuery {
            limit: 1,
            finished: true,
            ..PlanQuery::default()
        };
        // `verify` reports a plan that cannot be listed.
        let page = engine.list_plans(&caller, query).await.ok();
        let last = page.and_then(|page| page.plans.into_iter().next());
        newest = newest.max(last.map(|last| last.sheet.updated_at));
        let checked = engine.verify(&caller).await?;
        let plans = format::count(checked.plans, "plan", "plans");
        let events = format::count(checked.events, "event", "events");
        let summary = format!("tenant `{}`: {plans}, {events}", tenant.name);
        if checked.inconsistencies.is_empty() {
            checks.push(Check::passed(
                "plans",
                format!("{summary}, all audit trails replay"),
            ));
        }
        for fault in &checked.index_errors {
            let message = format!("tenant `{}`: {fault}", tenant.name);
            let hint = "rebuild the index with `onward reindex`";
            checks.push(Check::failed("search", message, hint));
        }
        if checked.index_errors.is_empty() && checked.chunks > 0 {
            let chunks = format::count(checked.chunks, "chunk", "chunks");
            let message = format!("tenant `{}`: {chunks}, index complete", tenant.name);
            checks.push(Check::passed("search", message));
        }
        for fault in checked.inconsistencies {
            let message = match fault.plan {
                Some(plan) => format!("tenant `{}`, plan {plan}: {}", tenant.name, fault.message),
                None => fault.message,
            };
            let hint = "copy the database, restore a backup, and report this";
            checks.push(Check::failed("plans", message, hint));
        }
    }
    Ok(newest)
}

/// Checks the delivery of notifications, if a webhook is configured.
async fn check_notifications(
    cx: &Context,
    engine: &Engine,
    checks: &mut Vec<Check>,
) -> std::result::Result<(), Error> {
    let notify = &cx.config.notify;
    let Some(webhook) = notify.display_webhook() else {
        return Ok(());
    };
    if notify.secret.is_none() {
        let message = format!("notifications to `{webhook}` are off: no secret to sign them");
        let hint = "set `ONWARD_NOTIFY__SECRET`, or `secret` in `[notify]`";
        checks.push(Check::failed(NOTIFICATIONS, message, hint));
        return Ok(());
    }
    for tenant in engine.tenants().await? {
        let operator = match &*tenant.name {
            LOCAL => Caller::local("doctor"),
            other => engine.operator(other, "doctor").await?,
        };
        let recent = engine.notifications(&operator, MAX_NOTIFICATIONS).await?;
        let is_undelivered = |notice: &&Notice| match notice.delivery {
            Delivery::GivenUp => true,
            Delivery::Waiting => notice.last_error.is_some(),
            Delivery::Sent | Delivery::Unwanted => false,
        };
        let undelivered: Vec<&Notice> = recent.iter().filter(is_undelivered).collect();
        let Some(last) = undelivered.first() else {
            let sent = recent.iter().filter(|one| one.delivery == Delivery::Sent);
            let sent = format::count(sent.count() as u64, "notification", "notifications");
            let message = format!("tenant `{}`: {sent} sent to `{webhook}`", tenant.name);
            checks.push(Check::passed(NOTIFICATIONS, message));
            continue;
        };
        let message = format!(
            "tenant `{}`: {} not delivered to `{webhook}`: {}",
            tenant.name,
            format::count(undelivered.len() as u64, "notification", "notifications"),
            last.last_error.as_deref().unwrap_or("no attempt yet"),
        );
        let hint = "check that the webhook is reachable and returns a status from 200 to 299";
        checks.push(Check::failed(NOTIFICATIONS, message, hint));
    }
    Ok(())
}

/// Checks that only the owner can read the files of the database.
#[cfg(unix)]
fn check_permissions(files: &[PathBuf]) -> Vec<Check> {
    use std::os::unix::fs::PermissionsExt;
    let mut checks = Vec::new();
    for file in files {
        let Ok(metadata) = std::fs::metadata(file) else {
            continue;
        };
        let mode = metadata.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let file = file.display();
            let message = format!("`{file}` has mode {mode:o}: other users can read the plans");
            let hint = format!("chmod 600 '{file}'");
            checks.push(Check::failed("permissions", message, hint));
        }
    }
    if checks.is_empty() {
        checks.push(Check::passed("permissions", "only the owner has access"));
    }
    checks
}

#[cfg(not(unix))]
fn check_permissions(_: &[PathBuf]) -> Vec<Check> {
    Vec::new()
}
