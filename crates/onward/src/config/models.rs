//! Which models are asked: `[embeddings]` for what texts mean, `[extraction]` for what stands in them.
//! Without them words are searched, and the agent's own model is asked where it can be.
//!
//! Keys stand in the environment and nowhere else: a file is soon shared.

use std::fmt;

use super::file::{File, Said};
use super::{Setting, Source, variable};
use crate::failure::Result;

/// What is sent to prove who asks.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Key(String);

impl Key {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    #[cfg(test)]
    pub(crate) fn new(key: &str) -> Self {
        Self(key.to_owned())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// Where texts are asked what they mean.
#[derive(Debug, Clone)]
pub(crate) struct Embeddings {
    /// The server, up to `/embeddings`.
    pub(crate) url: Setting<Option<String>>,
    pub(crate) model: Setting<Option<String>>,
    /// How many numbers it is asked for; as many as it likes without it.
    pub(crate) dimensions: Setting<Option<u32>>,
    pub(crate) batch_size: Setting<u32>,
    pub(crate) timeout_seconds: Setting<u32>,
    pub(crate) key: Option<Key>,
}

/// Whose protocol is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Provider {
    OpenAi,
    Anthropic,
}

impl Provider {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Provider::OpenAi => "openai",
            Provider::Anthropic => "anthropic",
        }
    }

    /// Where its vendor is.
    const fn usual_url(self) -> &'static str {
        match self {
            Provider::OpenAi => "https://api.openai.com/v1",
            Provider::Anthropic => "https://api.anthropic.com/v1",
        }
    }
}

/// Where texts are asked what stands in them.
#[derive(Debug, Clone)]
pub(crate) struct Extraction {
    pub(crate) provider: Setting<Provider>,
    /// The server, up to `/chat/completions` or `/messages`.
    pub(crate) url: Setting<String>,
    /// None: nobody is asked.
    pub(crate) model: Setting<Option<String>>,
    pub(crate) timeout_seconds: Setting<u32>,
    pub(crate) key: Option<Key>,
}

/// What a file says about `[embeddings]`.
#[derive(Debug, Default)]
pub(super) struct SaidEmbeddings {
    pub(super) url: Said<String>,
    pub(super) model: Said<String>,
    pub(super) dimensions: Said<u32>,
    pub(super) batch_size: Said<u32>,
    pub(super) timeout_seconds: Said<u32>,
}

/// What a file says about `[extraction]`.
#[derive(Debug, Default)]
pub(super) struct SaidExtraction {
    pub(super) provider: Said<String>,
    pub(super) url: Said<String>,
    pub(super) model: Said<String>,
    pub(super) timeout_seconds: Said<u32>,
}

impl Embeddings {
    pub(super) fn read(files: &[File]) -> Result<Self> {
        let first = |of: fn(&SaidEmbeddings) -> &Said<String>| {
            files.iter().find_map(|file| of(&file.embeddings).clone())
        };
        let count = |of: fn(&SaidEmbeddings) -> &Said<u32>| {
            files.iter().find_map(|file| of(&file.embeddings).clone())
        };
        let url = text(
            "embeddings.url",
            "ONWARD_EMBEDDINGS_URL",
            first(|said| &said.url),
        )?;
        let model = text(
            "embeddings.model",
            "ONWARD_EMBEDDINGS_MODEL",
            first(|said| &said.model),
        )?;
        match (&url, &model) {
            (Some((_, from)), None) => {
                return Err(from.refuses("embeddings", "has a `url` and no `model`"));
            }
            (None, Some((_, from))) => {
                return Err(from.refuses("embeddings", "has a `model` and no `url`"));
            }
            (Some(_), Some(_)) | (None, None) => {}
        }
        let key = key("ONWARD_EMBEDDINGS_API_KEY")?;
        if let Some((url, from)) = &url {
            reachable("embeddings.url", url, key.as_ref(), from)?;
        }
        let dimensions = number(
            "embeddings.dimensions",
            "ONWARD_EMBEDDINGS_DIMENSIONS",
            count(|said| &said.dimensions),
            1..=16_384,
        )?;
        let batch_size = number(
            "embeddings.batch_size",
            "ONWARD_EMBEDDINGS_BATCH_SIZE",
            count(|said| &said.batch_size),
            1..=2_048,
        )?;
        let timeout = number(
            "embeddings.timeout_seconds",
            "ONWARD_EMBEDDINGS_TIMEOUT_SECONDS",
            count(|said| &said.timeout_seconds),
            1..=600,
        )?;
        Ok(Self {
            url: maybe(url),
            model: maybe(model),
            dimensions: maybe(dimensions),
            batch_size: or(batch_size, 32),
            timeout_seconds: or(timeout, 30),
            key,
        })
    }
}

impl Extraction {
    pub(super) fn read(files: &[File]) -> Result<Self> {
        let first = |of: fn(&SaidExtraction) -> &Said<String>| {
            files.iter().find_map(|file| of(&file.extraction).clone())
        };
        let provider = match text(
            "extraction.provider",
            "ONWARD_EXTRACTION_PROVIDER",
            first(|said| &said.provider),
        )? {
            Some((word, from)) => {
                let all = [Provider::OpenAi, Provider::Anthropic];
                let value = all.into_iter().find(|provider| provider.as_str() == word);
                let value = value.ok_or_else(|| {
                    from.refuses("extraction.provider", "must be `openai` or `anthropic`")
                })?;
                Setting { value, from }
            }
            None => Setting {
                value: Provider::OpenAi,
                from: Source::Default,
            },
        };
        let key = key("ONWARD_EXTRACTION_API_KEY")?;
        let url = text(
            "extraction.url",
            "ONWARD_EXTRACTION_URL",
            first(|said| &said.url),
        )?;
        if let Some((url, from)) = &url {
            reachable("extraction.url", url, key.as_ref(), from)?;
        }
        let model = text(
            "extraction.model",
            "ONWARD_EXTRACTION_MODEL",
            first(|said| &said.model),
        )?;
        if let (Some((_, from)), None) = (&url, &model) {
            return Err(from.refuses("extraction", "has a `url` and no `model`"));
        }
        let timeout = number(
            "extraction.timeout_seconds",
            "ONWARD_EXTRACTION_TIMEOUT_SECONDS",
            files
                .iter()
                .find_map(|file| file.extraction.timeout_seconds.clone()),
            1..=600,
        )?;
        Ok(Self {
            url: or(url, provider.value.usual_url().to_owned()),
            provider,
            model: maybe(model),
            timeout_seconds: or(timeout, 60),
            key,
        })
    }
}

fn text(what: &'static str, name: &'static str, file: Said<String>) -> Result<Said<String>> {
    match variable(name).transpose()?.or(file) {
        Some((text, from)) if text.trim().is_empty() => Err(from.refuses(what, "is empty")),
        said => Ok(said),
    }
}

fn number(
    what: &'static str,
    name: &'static str,
    file: Said<u32>,
    range: std::ops::RangeInclusive<u32>,
) -> Result<Said<u32>> {
    let said = match variable(name).transpose()? {
        Some((text, from)) => match text.parse() {
            Ok(number) => Some((number, from)),
            Err(_) => return Err(from.refuses(what, "is no number")),
        },
        None => file,
    };
    match said {
        Some((number, from)) if !range.contains(&number) => Err(from.refuses(
            what,
            format_args!(
                "is {number}, and must be {} to {}",
                range.start(),
                range.end()
            ),
        )),
        said => Ok(said),
    }
}

fn key(name: &'static str) -> Result<Option<Key>> {
    let Some((text, from)) = variable(name).transpose()? else {
        return Ok(None);
    };
    let text = text.trim().to_owned();
    match !text.is_empty() && text.chars().all(|char| char.is_ascii_graphic()) {
        true => Ok(Some(Key(text))),
        false => Err(from.refuses(name, "is no key: it holds blanks or signs of no key")),
    }
}

/// A key goes over a line that nobody else speaks on, and stands in no address: those are shown.
fn reachable(what: &'static str, url: &str, key: Option<&Key>, from: &Source) -> Result<()> {
    if url.contains(['@', '?', '#', ' ']) {
        return Err(from.refuses(
            what,
            "must be an address without a name, a key or a query in it",
        ));
    }
    match key {
        Some(_) => super::serve::secure(what, url, from),
        None if url.starts_with("https://") || url.starts_with("http://") => Ok(()),
        None => Err(from.refuses(what, "must begin with `https://` or `http://`")),
    }
}

fn maybe<T>(said: Said<T>) -> Setting<Option<T>> {
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

fn or<T>(said: Said<T>, default: T) -> Setting<T> {
    match said {
        Some((value, from)) => Setting { value, from },
        None => Setting {
            value: default,
            from: Source::Default,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_goes_over_a_safe_line_and_stands_in_no_address() {
        let key = Key::new("sk-secret");
        let fits =
            |url: &str, key: Option<&Key>| reachable("a", url, key, &Source::Default).is_ok();
        for url in ["https://example.org/v1", "http://127.0.0.1:11434/v1"] {
            assert!(fits(url, Some(&key)) && fits(url, None), "{url}");
        }
        assert!(fits("http://192.168.0.2:11434/v1", None));
        for (url, key) in [
            ("http://192.168.0.2:11434/v1", Some(&key)),
            ("https://ann:pass@example.org/v1", None),
            ("https://example.org/v1?key=1", None),
            ("example.org", None),
        ] {
            assert!(!fits(url, key), "{url}");
        }
        assert_eq!(format!("{key:?}"), "Key(…)");
    }
}
