//! `onward doctor`: is everything as it should be? It looks, and changes nothing.
//!
//! A database that is not there yet is no fault: the first command that needs one makes it. One whose
//! schema is older is, until somebody brings it up to date. Each fault is named; the exit code is 1,
//! or 5 where the database cannot be used at all.

mod clock;
mod hooks;
mod meaning;

use std::path::Path;

use clap::Args;
use onward_core::Timestamp;
use onward_engine::caller::LOCAL;
use onward_engine::engine::Settings;
use onward_engine::list::PlanQuery;
use onward_engine::{Address, Caller, Delivery, Engine, Error, Notice, schema, store};
use serde::Serialize;

use super::Context;
use crate::config::shown;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::table::{Cell, Table};
use crate::output::{Tone, words};

const NOTIFICATIONS: &str = "notifications";
/// How many of the last findings are looked at.
const NOTICES: u32 = 50;

/// Check the configuration, agents' hooks, the database, the clock, the index of the search, who is told of findings, and that every plan is what its log says
#[derive(Args)]
pub(crate) struct Doctor {}

/// One thing that was looked at.
#[derive(Serialize)]
struct Check {
    check: &'static str,
    ok: bool,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

#[derive(Serialize)]
struct Answer<'a> {
    ok: bool,
    checks: &'a [Check],
}

impl Check {
    fn good(check: &'static str, message: impl Into<String>) -> Self {
        Self {
            check,
            ok: true,
            message: message.into(),
            hint: None,
        }
    }

    fn fault(check: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
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
    hooks::look(&mut checks);
    let exit = look(cx, &mut checks).await;
    let ok = checks.iter().all(|check| check.ok);
    if cx.output.json {
        let checks = &checks;
        cx.output.print_json(&Answer { ok, checks })?;
    } else {
        let mut table = Table::new(&["", "", ""]);
        for check in &checks {
            let (word, tone) = match check.ok {
                true => ("ok", Tone::Good),
                false => ("FAULT", Tone::Bad),
            };
            let message = (&check.message).into();
            table.row([Cell::toned(word, Some(tone)), check.check.into(), message]);
        }
        cx.output.print(&table.render(cx.output, ""))?;
        for hint in checks.iter().filter_map(|check| check.hint.as_ref()) {
            cx.output.say(&format!("hint: {}", words::lines(hint)));
        }
    }
    let usable = exit == Exit::Done;
    Ok(if usable && !ok { Exit::Failed } else { exit })
}

fn configuration(cx: &Context) -> Check {
    let files: Vec<String> = cx
        .config
        .files
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    Check::good(
        "configuration",
        match files.is_empty() {
            true => "no file; built-in values, the environment and flags".to_owned(),
            false => files.join(", "),
        },
    )
}

/// Looks at the database. Done where it can be used, whatever is wrong in it.
async fn look(cx: &Context, checks: &mut Vec<Check>) -> Exit {
    let address = &cx.config.database.value;
    let name = format!("{} ({})", shown(address), cx.config.database.from);
    if let Address::File(path) = address
        && !path.exists()
    {
        let message = format!("{name}: not there yet; the first command that needs it makes it");
        checks.push(Check::good("database", message));
        return Exit::Done;
    }
    let (found, known) = match schema(address).await {
        Ok(versions) => versions,
        Err(why) => return broken("database", why.into(), checks),
    };
    checks.push(Check::good("database", name));
    if let Address::File(path) = address {
        checks.extend(permissions(path));
    }
    if found != known {
        let why = match found > known {
            true => store::Error::Newer { found, known },
            false => store::Error::Older { found, known },
        };
        return broken("schema", why.into(), checks);
    }
    checks.push(Check::good("schema", format!("version {found}")));
    let settings = Settings {
        keep_schema: true,
        ..Settings::default()
    };
    let engine = match Engine::open(address, settings).await {
        Ok(engine) => engine,
        Err(why) => return broken("database", why, checks),
    };
    cx.opened.replace(Some(engine.clone()));
    let checked = async {
        let newest = plans(&engine, checks).await?;
        checks.push(clock::look(&engine, newest));
        checks.extend(meaning::look(&engine).await?);
        notices(cx, &engine, checks).await
    };
    match checked.await {
        Ok(()) => Exit::Done,
        Err(why) => broken("plans", why, checks),
    }
}

fn broken(check: &'static str, why: Error, checks: &mut Vec<Check>) -> Exit {
    let failure = Failure::from(why);
    checks.push(Check::fault(check, failure.message, failure.hint));
    failure.exit
}

/// Replays the trail of every plan of every tenant, and looks at what stands beside the plans.
/// When anything about any of them last changed is the answer.
async fn plans(
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
        // A plan that cannot be listed is named below.
        let page = engine.list_plans(&caller, query).await.ok();
        let last = page.and_then(|page| page.plans.into_iter().next());
        newest = newest.max(last.map(|last| last.sheet.updated_at));
        let checked = engine.verify(&caller).await?;
        let plans = words::count(checked.plans, "plan", "plans");
        let events = words::count(checked.events, "event", "events");
        let of = format!("tenant `{}`: {plans}, {events}", tenant.name);
        if checked.faults.is_empty() {
            checks.push(Check::good("plans", format!("{of}, each as its log says")));
        }
        for fault in &checked.index {
            let message = format!("tenant `{}`: {fault}", tenant.name);
            let hint = "`onward reindex` makes the index anew";
            checks.push(Check::fault("search", message, hint));
        }
        if checked.index.is_empty() && checked.chunks > 0 {
            let chunks = words::count(checked.chunks, "chunk", "chunks");
            let message = format!("tenant `{}`: {chunks} in order", tenant.name);
            checks.push(Check::good("search", message));
        }
        for fault in checked.faults {
            let message = match fault.plan {
                Some(plan) => format!("tenant `{}`, plan {plan}: {}", tenant.name, fault.what),
                None => fault.what,
            };
            let hint = "keep a copy of the database, restore a backup, and report this";
            checks.push(Check::fault("plans", message, hint));
        }
    }
    Ok(newest)
}

/// Whether people are told of findings, where somebody asked for that.
async fn notices(
    cx: &Context,
    engine: &Engine,
    checks: &mut Vec<Check>,
) -> std::result::Result<(), Error> {
    let notify = &cx.config.notify;
    let Some(webhook) = notify.shown() else {
        return Ok(());
    };
    if notify.secret.value.is_none() {
        let message = format!("`{webhook}` is told nothing: there is no secret to sign with");
        let hint = "set `ONWARD_NOTIFY_SECRET`, or `secret` in `[notify]`";
        checks.push(Check::fault(NOTIFICATIONS, message, hint));
        return Ok(());
    }
    for tenant in engine.tenants().await? {
        let operator = match &*tenant.name {
            LOCAL => Caller::local("doctor"),
            other => engine.operator(other, "doctor").await?,
        };
        let found = engine.notices(&operator, NOTICES).await?;
        let untold = |notice: &&Notice| match notice.delivery {
            Delivery::GivenUp => true,
            Delivery::Waiting => notice.last_error.is_some(),
            Delivery::Sent | Delivery::Unwanted => false,
        };
        let untold: Vec<&Notice> = found.iter().filter(untold).collect();
        let Some(last) = untold.first() else {
            let count = found.iter().filter(|one| one.delivery == Delivery::Sent);
            let told = words::count(count.count() as u64, "finding", "findings");
            let message = format!("tenant `{}`: {told} told at `{webhook}`", tenant.name);
            checks.push(Check::good(NOTIFICATIONS, message));
            continue;
        };
        let message = format!(
            "tenant `{}`: {} could not be told at `{webhook}`: {}",
            tenant.name,
            words::count(untold.len() as u64, "finding", "findings"),
            last.last_error.as_deref().unwrap_or("nobody tried"),
        );
        let hint = "check that the webhook is there and answers with a status of 200 to 299";
        checks.push(Check::fault(NOTIFICATIONS, message, hint));
    }
    Ok(())
}

/// Who else could read the file.
#[cfg(unix)]
fn permissions(path: &Path) -> Vec<Check> {
    use std::os::unix::fs::PermissionsExt;
    let mut faults = Vec::new();
    for ending in ["", "-wal", "-shm"] {
        let mut beside = path.as_os_str().to_owned();
        beside.push(ending);
        let beside = Path::new(&beside);
        let Ok(file) = std::fs::metadata(beside) else {
            continue;
        };
        let mode = file.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let shown = beside.display();
            let message = format!("`{shown}` has mode {mode:o}: others can get at the plans");
            let hint = format!("chmod 600 '{shown}'");
            faults.push(Check::fault("permissions", message, hint));
        }
    }
    if faults.is_empty() {
        faults.push(Check::good("permissions", "for its owner alone"));
    }
    faults
}

#[cfg(not(unix))]
fn permissions(_: &Path) -> Vec<Check> {
    Vec::new()
}
