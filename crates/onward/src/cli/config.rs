//! `onward config`: the effective configuration, and the source of each value.

use clap::Args;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value as Json;

use super::Context;
use crate::config::trust::{Ignored, Reason};
use crate::config::{Config, DefaultValue, Kind, Setting, Source, display_origin, reference};
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::table::Table;

fn after_help() -> String {
    format!(
        "Environment variables: the path of the key in capitals, with `__` between table and key.\n\
         For example, `serve.bind` is ONWARD_SERVE__BIND, and `access.issuer.url` is\n\
         ONWARD_ACCESS__ISSUER__URL. Items of a list are separated by spaces.\n\n\
         Example file:\n\n{}",
        reference::example("  ").trim_end()
    )
}

/// Show the configuration and the source of each value
///
/// Precedence, highest first: flags, environment, the project's `onward.toml` (in this directory or
/// the nearest ancestor), `$XDG_CONFIG_HOME/onward/config.toml`, defaults. Until you run
/// `onward trust`, the project's file sets thresholds and names only.
#[derive(Args)]
#[command(after_help = after_help())]
pub(crate) struct ConfigCommand {}

pub(super) fn run(cx: &Context) -> Result {
    let config = &cx.config;
    if cx.output.json {
        cx.output.print_json(&ConfigView { config, prefix: "" })?;
        return Ok(Exit::Done);
    }
    // Grouped like the file, so that the lines fit 80 columns.
    let mut rows = Table::new(&["KEY", "VALUE", "SOURCE"]).with_flexible(&[1, 2]);
    let mut last = "";
    for setting in &config.settings.all {
        // Of a feature that is off, only the key that turns it on is shown.
        let Setting { key, source, .. } = setting;
        if config.settings.is_effective(key) || key.table.switch == Some(key.path) {
            let (table, name) = key.path.rsplit_once('.').unwrap_or(("", key.path));
            if table != last {
                last = table;
                rows.row([format!("[{table}]"), String::new(), String::new()].map(Into::into));
            }
            let cells = [name, &display(setting), &source.short()];
            rows.row(cells.map(Into::into));
        }
    }
    cx.output.print(&rows.render(cx.output, ""))?;
    if let Some(ignored) = &config.ignored {
        let mut rows = Table::new(&["IGNORED KEY", "REASON", "FILE"]);
        let (file, reason) = (
            ignored.path.display().to_string(),
            ignored.reason.to_string(),
        );
        let keys: &[&str] = if ignored.keys.is_empty() {
            &["all"]
        } else {
            &ignored.keys
        };
        for key in keys {
            rows.row([*key, &reason, &file].map(Into::into));
        }
        cx.output
            .print(&format!("\n{}", rows.render(cx.output, "")))?;
    }
    if config.files.is_empty() && config.ignored.is_none() {
        cx.output.note("no configuration file found");
    }
    Ok(Exit::Done)
}

/// A value for the text table.
fn display(Setting { key, value, .. }: &Setting) -> String {
    match (&key.kind, value) {
        (_, Json::Null) => match key.default {
            DefaultValue::Unset(words) | DefaultValue::Fixed(words) => words.to_owned(),
        },
        (Kind::Secret(_) | Kind::ApiKey, _) => "…".to_owned(),
        (Kind::Webhook, Json::String(url)) => display_origin(url),
        (_, Json::String(text)) => text.clone(),
        (_, Json::Array(items)) if items.is_empty() => "none".to_owned(),
        (_, Json::Array(items)) => {
            let items: Vec<&str> = items.iter().filter_map(Json::as_str).collect();
            items.join(" ")
        }
        (_, value) => value.to_string(),
    }
}

/// The keys below a path, as nested objects in the order of the table of keys.
struct ConfigView<'a> {
    config: &'a Config,
    /// The path and a dot, or empty.
    prefix: &'a str,
}

#[derive(serde::Serialize)]
struct SettingView<'a> {
    value: Json,
    #[serde(flatten)]
    source: &'a Source,
}

/// The part of the project's file that does not apply. Without keys, it is the whole file.
#[derive(serde::Serialize)]
struct IgnoredView<'a> {
    file: String,
    reason: Reason,
    keys: &'a [&'static str],
}

impl<'a> From<&'a Ignored> for IgnoredView<'a> {
    fn from(ignored: &'a Ignored) -> Self {
        Self {
            file: ignored.path.display().to_string(),
            reason: ignored.reason,
            keys: &ignored.keys,
        }
    }
}

impl<'a> From<&'a Setting> for SettingView<'a> {
    fn from(Setting { key, value, source }: &'a Setting) -> Self {
        let value = match (&key.kind, value) {
            // Whether it is set; the value is not printed.
            (Kind::Secret(_) | Kind::ApiKey, value) => (!value.is_null()).into(),
            (Kind::Webhook, Json::String(url)) => display_origin(url).into(),
            (_, value) => value.clone(),
        };
        Self { value, source }
    }
}

impl Serialize for ConfigView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let Self { config, prefix } = *self;
        let mut map = serializer.serialize_map(None)?;
        let mut last = "";
        for setting in &config.settings.all {
            let Some(rest) = setting.key.path.strip_prefix(prefix) else {
                continue;
            };
            match rest.split_once('.') {
                // Only the environment can set it, so it has no source.
                None if matches!(setting.key.kind, Kind::ApiKey) => {
                    map.serialize_entry("hasKey", &!setting.value.is_null())?;
                }
                None => map.serialize_entry(&camel_case(rest), &SettingView::from(setting))?,
                Some((table, _)) if table == last => {}
                Some((table, _)) => {
                    last = table;
                    let prefix = &format!("{prefix}{table}.");
                    map.serialize_entry(&camel_case(table), &ConfigView { config, prefix })?;
                }
            }
        }
        if prefix.is_empty() {
            let files = config.files.iter().map(|path| path.display().to_string());
            map.serialize_entry("files", &files.collect::<Vec<_>>())?;
            let ignored = config.ignored.as_ref().map(IgnoredView::from);
            map.serialize_entry("ignored", &ignored)?;
        }
        map.end()
    }
}

/// `form_seconds` as `formSeconds`.
fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |text, word| {
        let (initial, rest) = word.split_at(word.len().min(1));
        text + &initial.to_uppercase() + rest
    })
}
