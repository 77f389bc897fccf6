//! `[notify]`: the webhook for stalls, pending reviews and failed plans.
//!
//! The URL of a webhook is often a secret itself, so only its origin is displayed.

use onward_core::finding::Kind;

use super::Setting;
use super::lookup::Lookup;
use super::serve::{check_secret, require_https};
use crate::failure::Result;

#[derive(Debug)]
pub(crate) struct Notify {
    /// The URL that notifications are posted to.
    pub(crate) webhook: Setting<Option<String>>,
    /// The key that signs them.
    pub(crate) secret: Setting<Option<String>>,
    /// The kinds of findings to send.
    pub(crate) kinds: Setting<Vec<Kind>>,
}

impl Notify {
    pub(super) fn read(lookup: &Lookup<'_>) -> Result<Self> {
        let webhook = lookup.text("notify.webhook", |tables| &tables.notify.webhook)?;
        if let Some(Setting { value, source }) = &webhook {
            require_https("notify.webhook", value, source)?;
            if value.parse::<reqwest::Url>().is_err() {
                return Err(source.invalid("notify.webhook", "must be a URL"));
            }
        }
        let secret = lookup.text("notify.secret", |tables| &tables.notify.secret)?;
        check_secret("notify.secret", secret.as_ref())?;
        let kinds = lookup.list("notify.kinds", |tables| &tables.notify.kinds)?;
        Ok(Self {
            webhook: Setting::optional(webhook),
            secret: Setting::optional(secret),
            kinds: parse_kinds(kinds)?,
        })
    }

    /// The webhook for display: its origin, because the path may be a secret.
    pub(crate) fn display_webhook(&self) -> Option<String> {
        let url = self.webhook.value.as_ref()?.parse::<reqwest::Url>().ok()?;
        Some(format!("{}/…", url.origin().ascii_serialization()))
    }
}

fn parse_kinds(setting: Option<Setting<Vec<String>>>) -> Result<Setting<Vec<Kind>>> {
    let Some(Setting {
        value: names,
        source,
    }) = setting
    else {
        return Ok(Setting::from_default(Kind::ALL.into()));
    };
    let mut value = Vec::new();
    for name in names {
        match name.parse() {
            Ok(kind) if !value.contains(&kind) => value.push(kind),
            Ok(_) => {}
            Err(_) => {
                let all = Kind::ALL.map(|kind| format!("`{kind}`")).join(", ");
                return Err(source.invalid(
                    "notify.kinds",
                    format_args!("must be a list of {all}, not `{name}`"),
                ));
            }
        }
    }
    Ok(Setting { value, source })
}
