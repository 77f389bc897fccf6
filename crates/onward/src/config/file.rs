//! One configuration file. A key that nobody knows and a value of the wrong kind are refused with the
//! file and the line: a misspelt key must not be ignored.

use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use super::models::{SaidEmbeddings, SaidExtraction};
use super::{Source, loop_control, notify};
use crate::failure::{Failure, Result};

/// What a file may say about one key: the value, and where it stands.
pub(super) type Said<T> = Option<(T, Source)>;

/// What a file says.
#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) database: Said<String>,
    pub(super) tenant: Said<String>,
    pub(super) finished_plans_days: Said<u32>,
    pub(super) tool_calls_days: Said<u32>,
    pub(super) sessions_days: Said<u32>,
    pub(super) loop_control: loop_control::Said,
    pub(super) notify: notify::Table,
    pub(super) form_seconds: Said<u32>,
    pub(super) embeddings: SaidEmbeddings,
    pub(super) extraction: SaidExtraction,
    pub(super) serve: Serve,
}

/// What a file says about `onward serve`.
#[derive(Debug, Default)]
pub(super) struct Serve {
    pub(super) bind: Said<String>,
    pub(super) public_url: Said<String>,
    pub(super) allowed_origins: Said<Vec<String>>,
    pub(super) secret: Said<String>,
    pub(super) require_tokens: Said<bool>,
    pub(super) issuer: Issuer,
    pub(super) limits: Limits,
}

/// What a file says about an identity provider.
#[derive(Debug, Default)]
pub(super) struct Issuer {
    pub(super) url: Said<String>,
    pub(super) audience: Said<String>,
    pub(super) jwks_url: Said<String>,
    pub(super) client_id: Said<String>,
    pub(super) client_secret: Said<String>,
    pub(super) scopes: Said<Vec<String>>,
    pub(super) tenant_claim: Said<String>,
    pub(super) role_claim: Said<String>,
    pub(super) default_role: Said<String>,
}

/// What a file says about limits.
#[derive(Debug, Default)]
pub(super) struct Limits {
    pub(super) token_calls_per_second: Said<u32>,
    pub(super) tenant_calls_per_second: Said<u32>,
    pub(super) body_bytes: Said<u32>,
    pub(super) request_seconds: Said<u32>,
    pub(super) requests: Said<u32>,
    pub(super) streams: Said<u32>,
}

/// What stands in it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    database: Option<Spanned<String>>,
    tenant: Option<Spanned<String>>,
    retention: Option<RetentionText>,
    loop_control: Option<loop_control::Text>,
    reviews: Option<ReviewsText>,
    embeddings: Option<EmbeddingsText>,
    extraction: Option<ExtractionText>,
    notify: Option<notify::Text>,
    serve: Option<ServeText>,
    access: Option<AccessText>,
    limits: Option<LimitsText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RetentionText {
    finished_plans_days: Option<Spanned<u32>>,
    tool_calls_days: Option<Spanned<u32>>,
    sessions_days: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReviewsText {
    form_seconds: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EmbeddingsText {
    url: Option<Spanned<String>>,
    model: Option<Spanned<String>>,
    dimensions: Option<Spanned<u32>>,
    batch_size: Option<Spanned<u32>>,
    timeout_seconds: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExtractionText {
    provider: Option<Spanned<String>>,
    url: Option<Spanned<String>>,
    model: Option<Spanned<String>>,
    timeout_seconds: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServeText {
    bind: Option<Spanned<String>>,
    public_url: Option<Spanned<String>>,
    allowed_origins: Option<Spanned<Vec<String>>>,
    secret: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AccessText {
    require_tokens: Option<Spanned<bool>>,
    issuer: Option<IssuerText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct IssuerText {
    url: Option<Spanned<String>>,
    audience: Option<Spanned<String>>,
    jwks_url: Option<Spanned<String>>,
    client_id: Option<Spanned<String>>,
    client_secret: Option<Spanned<String>>,
    scopes: Option<Spanned<Vec<String>>>,
    tenant_claim: Option<Spanned<String>>,
    role_claim: Option<Spanned<String>>,
    default_role: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitsText {
    token_calls_per_second: Option<Spanned<u32>>,
    tenant_calls_per_second: Option<Spanned<u32>>,
    body_bytes: Option<Spanned<u32>>,
    request_seconds: Option<Spanned<u32>>,
    requests: Option<Spanned<u32>>,
    streams: Option<Spanned<u32>>,
}

/// Reads a file, which must be there.
pub(super) fn read(path: &Path) -> Result<File> {
    let text = std::fs::read_to_string(path).map_err(|why| {
        Failure::usage(
            format!(
                "the configuration `{}` cannot be read: {why}",
                path.display()
            ),
            "check the path and who may read it",
        )
    })?;
    let parsed: Text = toml::from_str(&text).map_err(|error| {
        let line = line(&text, error.span().map_or(0, |span| span.start));
        Failure::usage(
            format!("{}:{line}: {}", path.display(), error.message()),
            "`onward config --help` shows what can stand there",
        )
    })?;
    let page = Page { path, text: &text };
    let mut file = File {
        database: page.said(parsed.database),
        tenant: page.said(parsed.tenant),
        ..File::default()
    };
    if let Some(retention) = parsed.retention {
        file.finished_plans_days = page.said(retention.finished_plans_days);
        file.tool_calls_days = page.said(retention.tool_calls_days);
        file.sessions_days = page.said(retention.sessions_days);
    }
    if let Some(table) = parsed.loop_control {
        file.loop_control = table.placed(|span| page.at(span));
    }
    if let Some(table) = parsed.notify {
        file.notify = table.placed(|span| page.at(span));
    }
    if let Some(reviews) = parsed.reviews {
        file.form_seconds = page.said(reviews.form_seconds);
    }
    if let Some(embeddings) = parsed.embeddings {
        file.embeddings = SaidEmbeddings {
            url: page.said(embeddings.url),
            model: page.said(embeddings.model),
            dimensions: page.said(embeddings.dimensions),
            batch_size: page.said(embeddings.batch_size),
            timeout_seconds: page.said(embeddings.timeout_seconds),
        };
    }
    if let Some(extraction) = parsed.extraction {
        file.extraction = SaidExtraction {
            provider: page.said(extraction.provider),
            url: page.said(extraction.url),
            model: page.said(extraction.model),
            timeout_seconds: page.said(extraction.timeout_seconds),
        };
    }
    if let Some(serve) = parsed.serve {
        file.serve.bind = page.said(serve.bind);
        file.serve.public_url = page.said(serve.public_url);
        file.serve.allowed_origins = page.said(serve.allowed_origins);
        file.serve.secret = page.said(serve.secret);
    }
    if let Some(access) = parsed.access {
        file.serve.require_tokens = page.said(access.require_tokens);
        if let Some(issuer) = access.issuer {
            file.serve.issuer = page.issuer(issuer);
        }
    }
    if let Some(limits) = parsed.limits {
        file.serve.limits = page.limits(limits);
    }
    Ok(file)
}

/// A file that knows its lines.
struct Page<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Page<'_> {
    fn at(&self, span: std::ops::Range<usize>) -> Source {
        Source::File {
            path: self.path.to_owned(),
            line: line(self.text, span.start),
        }
    }

    fn said<T>(&self, value: Option<Spanned<T>>) -> Said<T> {
        let value = value?;
        let from = self.at(value.span());
        Some((value.into_inner(), from))
    }

    fn issuer(&self, issuer: IssuerText) -> Issuer {
        Issuer {
            url: self.said(issuer.url),
            audience: self.said(issuer.audience),
            jwks_url: self.said(issuer.jwks_url),
            client_id: self.said(issuer.client_id),
            client_secret: self.said(issuer.client_secret),
            scopes: self.said(issuer.scopes),
            tenant_claim: self.said(issuer.tenant_claim),
            role_claim: self.said(issuer.role_claim),
            default_role: self.said(issuer.default_role),
        }
    }

    fn limits(&self, limits: LimitsText) -> Limits {
        Limits {
            token_calls_per_second: self.said(limits.token_calls_per_second),
            tenant_calls_per_second: self.said(limits.tenant_calls_per_second),
            body_bytes: self.said(limits.body_bytes),
            request_seconds: self.said(limits.request_seconds),
            requests: self.said(limits.requests),
            streams: self.said(limits.streams),
        }
    }
}

/// The line, from 1, that a byte of a text stands in.
fn line(text: &str, byte: usize) -> usize {
    let before = text.as_bytes().get(..byte).unwrap_or(text.as_bytes());
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}
