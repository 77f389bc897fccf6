//! `[embeddings]` and `[extraction]`: the models for semantic search and for `extract_data`.
//!
//! Without `[embeddings]`, search is full-text only. Without `[extraction]`, the agent's own model
//! extracts, if its client supports that. API keys come from the environment only, because files
//! get shared.

use std::fmt;

use super::Setting;
use super::lookup::Lookup;
use crate::failure::Result;

/// An API key.
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

/// The embeddings endpoint.
#[derive(Debug, Clone)]
pub(crate) struct Embeddings {
    /// The base URL, without `/embeddings`.
    pub(crate) url: Setting<Option<String>>,
    pub(crate) model: Setting<Option<String>>,
    /// The requested vector length; the model's own if `None`.
    pub(crate) dimensions: Setting<Option<u32>>,
    pub(crate) batch_size: Setting<u32>,
    pub(crate) timeout_seconds: Setting<u32>,
    pub(crate) key: Option<Key>,
}

/// The API of a completion endpoint.
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

    const fn default_url(self) -> &'static str {
        match self {
            Provider::OpenAi => "https://api.openai.com/v1",
            Provider::Anthropic => "https://api.anthropic.com/v1",
        }
    }
}

/// The completion endpoint for extraction.
#[derive(Debug, Clone)]
pub(crate) struct Extraction {
    pub(crate) provider: Setting<Provider>,
    /// The base URL, without `/chat/completions` or `/messages`.
    pub(crate) url: Setting<String>,
    /// `None` turns server-side extraction off.
    pub(crate) model: Setting<Option<String>>,
    pub(crate) timeout_seconds: Setting<u32>,
    pub(crate) key: Option<Key>,
}

impl Embeddings {
    pub(super) fn read(lookup: &Lookup<'_>) -> Result<Self> {
        let url = lookup.text("embeddings.url", |tables| &tables.embeddings.url)?;
        let model = lookup.text("embeddings.model", |tables| &tables.embeddings.model)?;
        match (&url, &model) {
            (Some(url), None) => {
                let why = "requires `embeddings.model`";
                return Err(url.source.invalid("embeddings.url", why));
            }
            (None, Some(model)) => {
                let why = "requires `embeddings.url`";
                return Err(model.source.invalid("embeddings.model", why));
            }
            (Some(_), Some(_)) | (None, None) => {}
        }
        let key = api_key(lookup, "embeddings.api_key")?;
        if let Some(url) = &url {
            check_url("embeddings.url", url, key.as_ref())?;
        }
        let dimensions = lookup.number("embeddings.dimensions", 1..=16_384, |tables| {
            &tables.embeddings.dimensions
        })?;
        let batch_size = lookup.number("embeddings.batch_size", 1..=2_048, |tables| {
            &tables.embeddings.batch_size
        })?;
        let timeout = lookup.number("embeddings.timeout_seconds", 1..=600, |tables| {
            &tables.embeddings.timeout_seconds
        })?;
        Ok(Self {
            url: Setting::optional(url),
            model: Setting::optional(model),
            dimensions: Setting::optional(dimensions),
            batch_size: Setting::or_default(batch_size, 32),
            timeout_seconds: Setting::or_default(timeout, 30),
            key,
        })
    }
}

impl Extraction {
    pub(super) fn read(lookup: &Lookup<'_>) -> Result<Self> {
        let provider = provider(lookup)?;
        let key = api_key(lookup, "extraction.api_key")?;
        let url = lookup.text("extraction.url", |tables| &tables.extraction.url)?;
        if let Some(url) = &url {
            check_url("extraction.url", url, key.as_ref())?;
        }
        let model = lookup.text("extraction.model", |tables| &tables.extraction.model)?;
        if let (Some(url), None) = (&url, &model) {
            let why = "requires `extraction.model`";
            return Err(url.source.invalid("extraction.url", why));
        }
        let timeout = lookup.number("extraction.timeout_seconds", 1..=600, |tables| {
            &tables.extraction.timeout_seconds
        })?;
        Ok(Self {
            url: Setting::or_default(url, provider.value.default_url().to_owned()),
            provider,
            model: Setting::optional(model),
            timeout_seconds: Setting::or_default(timeout, 60),
            key,
        })
    }
}

fn provider(lookup: &Lookup<'_>) -> Result<Setting<Provider>> {
    let key = "extraction.provider";
    let Some(Setting { value, source }) = lookup.text(key, |tables| &tables.extraction.provider)?
    else {
        return Ok(Setting::from_default(Provider::OpenAi));
    };
    let all = [Provider::OpenAi, Provider::Anthropic];
    match all.into_iter().find(|provider| provider.as_str() == value) {
        Some(value) => Ok(Setting { value, source }),
        None => Err(source.invalid(key, "must be `openai` or `anthropic`")),
    }
}

fn api_key(lookup: &Lookup<'_>, key: &str) -> Result<Option<Key>> {
    let Some(Setting { value, source }) = lookup.variable(key)? else {
        return Ok(None);
    };
    let text = value.trim();
    if !text.is_empty() && text.chars().all(|char| char.is_ascii_graphic()) {
        Ok(Some(Key(text.to_owned())))
    } else {
        Err(source.invalid(key, "must be an API key: ASCII characters without spaces"))
    }
}

/// Rejects URLs with credentials, because `onward config` prints URLs, and plain HTTP to another
/// host when a key is sent.
fn check_url(key: &str, url: &Setting<String>, api_key: Option<&Key>) -> Result<()> {
    let Setting { value: url, source } = url;
    if url.contains(['@', '?', '#', ' ']) {
        let why = "must be a URL without user name, query or fragment";
        return Err(source.invalid(key, why));
    }
    match api_key {
        Some(_) => super::serve::require_https(key, url, source),
        None if url.starts_with("https://") || url.starts_with("http://") => Ok(()),
        None => Err(source.invalid(key, "must begin with `https://` or `http://`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_urls_that_expose_credentials() {
        let api_key = Key::new("sk-secret");
        let is_valid = |url: &str, api_key: Option<&Key>| {
            check_url("a", &Setting::from_default(url.to_owned()), api_key).is_ok()
        };
        for url in ["https://example.org/v1", "http://127.0.0.1:11434/v1"] {
            assert!(
                is_valid(url, Some(&api_key)) && is_valid(url, None),
                "{url}"
            );
        }
        assert!(is_valid("http://192.168.0.2:11434/v1", None));
        for (url, api_key) in [
            ("http://192.168.0.2:11434/v1", Some(&api_key)),
            ("https://ann:pass@example.org/v1", None),
            ("https://example.org/v1?key=1", None),
            ("example.org", None),
        ] {
            assert!(!is_valid(url, api_key), "{url}");
        }
    }

    #[test]
    fn debug_output_hides_the_key() {
        assert_eq!(format!("{:?}", Key::new("sk-secret")), "Key(…)");
    }
}
