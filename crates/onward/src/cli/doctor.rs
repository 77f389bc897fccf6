//! `onward doctor`: checks the installation without changing it. Only the time of the last write
//! check is stored.
//!
//! A missing database is not a problem, because the next command creates it; an outdated schema is
//! one. The exit code is 1 if a check failed, or 5 if the database is unusable.

mod clock;
mod findings;
mod hooks;
mod hosts;
mod nodes;
mod notifications;
mod plans;
mod readiness;
mod schema;
mod vector_search;
mod versions;

use std::path::PathBuf;

use clap::Args;
use onward_engine::caller::LOCAL;
use onward_engine::engine::Settings;
use onward_engine::{Address, Caller, Engine, Error, store};
use serde::Serialize;

use super::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::{Output, Tone, format};

/// Check the installation and verify every plan against its audit trail
///
/// Checks the configuration, agent hooks, database, file permissions, schema, plans, search index,
/// clock, versions in use and notifications. Lists up to ten problems of each check, and the number
/// of each kind.
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
        let mut hints: Vec<&String> = Vec::new();
        for hint in checks.iter().filter_map(|check| check.hint.as_ref()) {
            if hints.contains(&hint) {
                continue;
            }
            hints.push(hint);
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
    checks.extend(hosts::check(address).await);
    let (found, known) = match onward_engine::schema(address).await {
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
        let outage = nodes::check_outage(&engine).await?;
        if !outage.is_empty() {
            // The other checks read the tenants of all nodes.
            checks.extend(outage);
            return Ok(());
        }
        checks.extend(schema::check(&engine).await);
        let newest = plans::check(&engine, checks).await?;
        checks.push(clock::check(&engine, newest));
        checks.extend(readiness::check(address, &engine).await?);
        checks.push(versions::check(&engine).await?);
        checks.extend(nodes::check(address, &engine).await?);
        checks.extend(vector_search::check(&engine).await?);
        checks.extend(notifications::check(cx, &engine).await?);
        Ok(())
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

/// The operator of a tenant.
async fn operator(engine: &Engine, tenant: &str) -> std::result::Result<Caller, Error> {
    match tenant {
        LOCAL => Ok(Caller::local("doctor")),
        other => engine.operator(other, "doctor").await,
    }
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
