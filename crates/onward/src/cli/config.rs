//! `onward config`: what holds for a run, and where each value came from.

use clap::Args;
use serde::Serialize;

use super::Context;
use crate::config::{Setting, Source, shown};
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::table::Table;

/// Show the configuration, and where each value came from
///
/// Flags count more than the environment, that more than the project's `onward.toml` (in this
/// directory or the nearest one above), and that more than `$XDG_CONFIG_HOME/onward/config.toml`.
#[derive(Args)]
#[command(after_help = "A configuration file:\n\n  \
    database = \"onward.db\"          # or \"postgres://…\"; also ONWARD_DATABASE, DATABASE_URL\n  \
    tenant = \"local\"                # also ONWARD_TENANT\n\n  \
    [retention]\n  \
    finished_plans_days = 365       # plans that are over; kept for ever without it\n  \
    tool_calls_days = 30            # the log of tool calls; kept for ever without it\n\n  \
    [reviews]\n  \
    form_seconds = 60               # how long an agent's own window asks you; 0: not at all")]
pub(crate) struct Show {}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    database: Value<String>,
    tenant: Value<String>,
    retention: Retention,
    reviews: Reviews,
    files: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Retention {
    finished_plans_days: Value<Option<u32>>,
    tool_calls_days: Value<Option<u32>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Reviews {
    form_seconds: Value<u32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Value<T> {
    value: T,
    source: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
}

impl<T> Value<T> {
    fn new(value: T, from: &Source) -> Self {
        let (source, name, file, line) = match from {
            Source::Flag(name) => ("flag", Some(*name), None, None),
            Source::Environment(name) => ("environment", Some(*name), None, None),
            Source::File { path, line } => {
                ("file", None, Some(path.display().to_string()), Some(*line))
            }
            Source::Default => ("default", None, None, None),
        };
        Self {
            value,
            source,
            name,
            file,
            line,
        }
    }
}

pub(super) fn run(cx: &Context) -> Result {
    let config = &cx.config;
    let database = shown(&config.database.value);
    if cx.output.json {
        let days = |setting: &Setting<Option<u32>>| Value::new(setting.value, &setting.from);
        cx.output.print_json(&Answer {
            database: Value::new(database, &config.database.from),
            tenant: Value::new(config.tenant.value.clone(), &config.tenant.from),
            retention: Retention {
                finished_plans_days: days(&config.finished_plans_days),
                tool_calls_days: days(&config.tool_calls_days),
            },
            reviews: Reviews {
                form_seconds: Value::new(config.form_seconds.value, &config.form_seconds.from),
            },
            files: config
                .files
                .iter()
                .map(|path| path.display().to_string())
                .collect(),
        })?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["NAME", "VALUE", "FROM"]);
    let mut row = |name: &str, value: &str, from: &Source| {
        table.row([name.into(), value.into(), from.to_string().into()]);
    };
    let days = |setting: &Setting<Option<u32>>| match setting.value {
        Some(days) => days.to_string(),
        None => "for ever".to_owned(),
    };
    row("database", &database, &config.database.from);
    row("tenant", &config.tenant.value, &config.tenant.from);
    for (name, setting) in [
        ("retention.finished_plans_days", &config.finished_plans_days),
        ("retention.tool_calls_days", &config.tool_calls_days),
    ] {
        row(name, &days(setting), &setting.from);
    }
    let Setting { value, from } = &config.form_seconds;
    row("reviews.form_seconds", &value.to_string(), from);
    cx.output.print(&table.render(cx.output, ""))?;
    if config.files.is_empty() {
        cx.output.say("no configuration file was found");
    }
    Ok(Exit::Done)
}
