//! `[notify]`: who is told of a stall, a review that waits, a failed plan, when nobody looks.
//!
//! The environment says a key as `ONWARD_NOTIFY_` and its name in capitals; kinds are then separated by
//! blanks. The address of a webhook is often a secret itself, so only its beginning is ever shown.

use onward_core::finding::Kind;
use serde::Deserialize;
use toml::Spanned;

use super::file::Said;
use super::serve::secure;
use super::{Setting, Source, variable};
use crate::failure::Result;

/// A secret that is shorter can be guessed.
const SHORTEST: usize = 32;

/// The table as a file holds it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Text {
    webhook: Option<Spanned<String>>,
    secret: Option<Spanned<String>>,
    kinds: Option<Spanned<Vec<String>>>,
}

/// What a file says about each key.
#[derive(Debug, Default)]
pub(super) struct Table {
    webhook: Said<String>,
    secret: Said<String>,
    kinds: Said<Vec<String>>,
}

impl Text {
    /// With the place of each value.
    pub(super) fn placed(self, at: impl Fn(std::ops::Range<usize>) -> Source) -> Table {
        fn placed<T>(
            value: Option<Spanned<T>>,
            at: &impl Fn(std::ops::Range<usize>) -> Source,
        ) -> Said<T> {
            let value = value?;
            let from = at(value.span());
            Some((value.into_inner(), from))
        }
        Table {
            webhook: placed(self.webhook, &at),
            secret: placed(self.secret, &at),
            kinds: placed(self.kinds, &at),
        }
    }
}

/// What holds, and who said it.
#[derive(Debug)]
pub(crate) struct Notify {
    /// Where it is told.
    pub(crate) webhook: Setting<Option<String>>,
    /// What it is signed with.
    pub(crate) secret: Setting<Option<String>>,
    /// What is told.
    pub(crate) kinds: Setting<Vec<Kind>>,
}

impl Notify {
    /// What holds for this run; the file that counts more comes first.
    pub(super) fn read(files: &[&Table]) -> Result<Self> {
        let text = |what, name, of: fn(&Table) -> &Said<String>| -> Result<Said<String>> {
            let said = variable(name).transpose()?;
            let said = said.or_else(|| files.iter().find_map(|file| of(file).clone()));
            match said {
                Some((text, from)) if text.trim().is_empty() => Err(from.refuses(what, "is empty")),
                said => Ok(said),
            }
        };
        let webhook = text("notify.webhook", "ONWARD_NOTIFY_WEBHOOK", |file| {
            &file.webhook
        })?;
        if let Some((url, from)) = &webhook {
            secure("notify.webhook", url, from)?;
            if url.parse::<reqwest::Url>().is_err() {
                return Err(from.refuses("notify.webhook", "is no address"));
            }
        }
        let secret = text("notify.secret", "ONWARD_NOTIFY_SECRET", |file| &file.secret)?;
        if let Some((secret, from)) = &secret
            && secret.len() < SHORTEST
        {
            return Err(from.refuses(
                "notify.secret",
                format_args!("must have at least {SHORTEST} characters, of chance"),
            ));
        }
        let words = |text: String| text.split_whitespace().map(str::to_owned).collect();
        let said = variable("ONWARD_NOTIFY_KINDS").transpose()?;
        let said = said.map(|(text, from)| (words(text), from));
        let said = said.or_else(|| files.iter().find_map(|file| file.kinds.clone()));
        Ok(Self {
            webhook: maybe(webhook),
            secret: maybe(secret),
            kinds: kinds(said)?,
        })
    }

    /// The webhook as it may be shown: what stands behind the host may be a secret.
    pub(crate) fn shown(&self) -> Option<String> {
        let url = self.webhook.value.as_ref()?.parse::<reqwest::Url>().ok()?;
        Some(format!("{}/…", url.origin().ascii_serialization()))
    }
}

fn maybe(said: Said<String>) -> Setting<Option<String>> {
    match said {
        Some((value, from)) => Setting {
            value: Some(value),
            from,
        },
        None => Setting {
            value: None,
            from: Source::Default,
        },
    }
}

fn kinds(said: Said<Vec<String>>) -> Result<Setting<Vec<Kind>>> {
    let Some((words, from)) = said else {
        return Ok(Setting {
            value: Kind::ALL.into(),
            from: Source::Default,
        });
    };
    let mut value = Vec::new();
    for word in words {
        match word.parse() {
            Ok(kind) if !value.contains(&kind) => value.push(kind),
            Ok(_) => {}
            Err(_) => {
                let all = Kind::ALL.map(|kind| format!("`{kind}`")).join(", ");
                return Err(from.refuses(
                    "notify.kinds",
                    format_args!("holds `{word}`, and may hold {all}"),
                ));
            }
        }
    }
    Ok(Setting { value, from })
}
