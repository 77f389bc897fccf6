//! Text completions with the OpenAI chat completions API, which most servers support, or the
//! Anthropic messages API.

use std::time::Duration;

use serde_json::{Value, json};

use super::embeddings::endpoint_url;
use super::{JsonClient, ModelError, RetryPolicy};
use crate::config::{ApiKey, Extraction, Provider};

/// Tokens of a model's answer.
pub(crate) const MAX_TOKENS: u32 = 8_192;

const ATTEMPTS: u32 = 3;
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    User,
    Model,
}

impl Role {
    /// The name in all supported APIs.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Model => "assistant",
        }
    }
}

/// A conversation, oldest message first.
pub(crate) type Messages = Vec<(Role, String)>;

/// A model's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Completion {
    pub(crate) text: String,
    /// The model name in the response.
    pub(crate) model: String,
    /// The model reached its token limit.
    pub(crate) truncated: bool,
}

/// A client of the configured completion endpoint.
pub(crate) struct CompletionClient {
    client: JsonClient,
    provider: Provider,
    url: String,
    model: String,
    key: Option<ApiKey>,
    policy: RetryPolicy,
}

impl CompletionClient {
    pub(crate) fn new(config: &Extraction) -> Self {
        let path = match config.provider {
            Provider::OpenAi => "chat/completions",
            Provider::Anthropic => "messages",
        };
        let timeout = Duration::from_secs(config.timeout_seconds.into());
        Self {
            client: JsonClient::default(),
            provider: config.provider,
            url: endpoint_url(&config.url, path),
            model: config.model.clone(),
            key: config.api_key.clone(),
            policy: RetryPolicy::new(ATTEMPTS, timeout),
        }
    }

    /// Sets a short timeout and backoff.
    #[cfg(test)]
    pub(crate) fn with_timeout(mut self, timeout: Duration) -> Self {
        self.policy.backoff = Duration::from_millis(1);
        self.policy.timeout = timeout;
        self
    }

    pub(crate) fn model(&self) -> &str {
        &self.model
    }

    pub(crate) async fn complete(
        &self,
        system: &str,
        conversation: &Messages,
    ) -> Result<Completion, ModelError> {
        let message =
            |(role, text): &(Role, String)| json!({ "role": role.as_str(), "content": text });
        let mut messages: Vec<Value> = conversation.iter().map(message).collect();
        let key = self.key.as_ref();
        let (headers, body) = match self.provider {
            Provider::OpenAi => {
                messages.insert(0, json!({ "role": "system", "content": system }));
                let bearer = key.map(|key| ("authorization", format!("Bearer {}", key.as_str())));
                let body = json!({ "model": self.model, "messages": messages });
                (bearer.into_iter().collect::<Vec<_>>(), body)
            }
            Provider::Anthropic => {
                let mut headers = vec![("anthropic-version", ANTHROPIC_VERSION.to_owned())];
                headers.extend(key.map(|key| ("x-api-key", key.as_str().to_owned())));
                let body = json!({
                    "model": self.model,
                    "max_tokens": MAX_TOKENS,
                    "system": system,
                    "messages": messages,
                });
                (headers, body)
            }
        };
        let response = self
            .client
            .post(&self.url, &headers, key, &body, self.policy);
        let response = response.await?;
        let read = match self.provider {
            Provider::OpenAi => parse_openai(&response),
            Provider::Anthropic => parse_anthropic(&response),
        };
        let (text, is_cut) = read.ok_or_else(|| {
            ModelError::Unavailable("the response is not a valid completion".to_owned())
        })?;
        let model = response.get("model").and_then(Value::as_str);
        Ok(Completion {
            text,
            model: model.unwrap_or(&self.model).chars().take(200).collect(),
            truncated: is_cut,
        })
    }
}

/// The text, and whether it is truncated.
fn parse_openai(response: &Value) -> Option<(String, bool)> {
    let choice = response.get("choices")?.as_array()?.first()?;
    let message = choice.get("message")?;
    let text = match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(parts @ Value::Array(_)) => join_text_parts(parts),
        // A refusal replaces the content.
        _ => message.get("refusal")?.as_str()?.to_owned(),
    };
    let reason = choice.get("finish_reason").and_then(Value::as_str);
    Some((text, reason == Some("length")))
}

/// The text, and whether it is truncated.
fn parse_anthropic(response: &Value) -> Option<(String, bool)> {
    let parts = response.get("content").filter(|parts| parts.is_array())?;
    let reason = response.get("stop_reason").and_then(Value::as_str);
    Some((join_text_parts(parts), reason == Some("max_tokens")))
}

/// Joins the text parts of a content array and ignores the others.
pub(crate) fn join_text_parts(parts: &Value) -> String {
    let parts = parts.as_array().map(Vec::as_slice).unwrap_or_default();
    let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
    texts.collect()
}
