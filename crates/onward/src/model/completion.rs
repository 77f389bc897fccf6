//! What a model answers: by the protocol of OpenAI's chat completions, which most servers speak, or by
//! Anthropic's messages.

use std::time::Duration;

use serde_json::{Value, json};

use super::embeddings::endpoint;
use super::{Line, Patience, Unanswered};
use crate::config::{Extraction, Key, Provider};
use crate::extraction::{MOST_TOKENS, Speaker, Talk};

/// How often it is asked before the caller is told that nobody answers.
const TRIES: u32 = 3;
/// The protocol of Anthropic's that is spoken.
const VERSION: &str = "2023-06-01";

/// What a model said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Completion {
    pub(crate) text: String,
    /// As the server names it.
    pub(crate) model: String,
    /// It was stopped before its end.
    pub(crate) is_cut: bool,
}

/// A server that answers.
pub(crate) struct Server {
    line: Line,
    provider: Provider,
    url: String,
    model: String,
    key: Option<Key>,
    patience: Patience,
}

impl Server {
    /// The one that is configured, if one is.
    pub(crate) fn of(config: &Extraction) -> Option<Self> {
        let model = config.model.value.clone()?;
        let provider = config.provider.value;
        let path = match provider {
            Provider::OpenAi => "chat/completions",
            Provider::Anthropic => "messages",
        };
        let timeout = Duration::from_secs(config.timeout_seconds.value.into());
        Some(Self {
            line: Line::default(),
            provider,
            url: endpoint(&config.url.value, path),
            model,
            key: config.key.clone(),
            patience: Patience::new(TRIES, timeout),
        })
    }

    /// The same, in a hurry.
    #[cfg(test)]
    pub(crate) fn hurried(mut self, timeout: Duration) -> Self {
        self.patience.pause = Duration::from_millis(1);
        self.patience.timeout = timeout;
        self
    }

    pub(crate) fn model(&self) -> &str {
        &self.model
    }

    /// Asks.
    pub(crate) async fn complete(
        &self,
        system: &str,
        talk: &Talk,
    ) -> Result<Completion, Unanswered> {
        let message =
            |(who, text): &(Speaker, String)| json!({ "role": who.as_str(), "content": text });
        let mut messages: Vec<Value> = talk.iter().map(message).collect();
        let key = self.key.as_ref();
        let (headers, question) = match self.provider {
            Provider::OpenAi => {
                messages.insert(0, json!({ "role": "system", "content": system }));
                let bearer = key.map(|key| ("authorization", format!("Bearer {}", key.as_str())));
                let question = json!({ "model": self.model, "messages": messages });
                (bearer.into_iter().collect::<Vec<_>>(), question)
            }
            Provider::Anthropic => {
                let mut headers = vec![("anthropic-version", VERSION.to_owned())];
                headers.extend(key.map(|key| ("x-api-key", key.as_str().to_owned())));
                let question = json!({
                    "model": self.model,
                    "max_tokens": MOST_TOKENS,
                    "system": system,
                    "messages": messages,
                });
                (headers, question)
            }
        };
        let asked = self
            .line
            .ask(&self.url, &headers, key, &question, self.patience);
        let answer = asked.await?;
        let read = match self.provider {
            Provider::OpenAi => of_openai(&answer),
            Provider::Anthropic => of_anthropic(&answer),
        };
        let (text, is_cut) = read.ok_or_else(|| {
            Unanswered::Away("it answers nothing that its protocol knows".to_owned())
        })?;
        let model = answer.get("model").and_then(Value::as_str);
        Ok(Completion {
            text,
            model: model.unwrap_or(&self.model).chars().take(200).collect(),
            is_cut,
        })
    }
}

fn of_openai(answer: &Value) -> Option<(String, bool)> {
    let choice = answer.get("choices")?.as_array()?.first()?;
    let message = choice.get("message")?;
    let text = match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(parts @ Value::Array(_)) => texts(parts),
        // A model that does not want to says why here.
        _ => message.get("refusal")?.as_str()?.to_owned(),
    };
    let reason = choice.get("finish_reason").and_then(Value::as_str);
    Some((text, reason == Some("length")))
}

fn of_anthropic(answer: &Value) -> Option<(String, bool)> {
    let parts = answer.get("content").filter(|parts| parts.is_array())?;
    let reason = answer.get("stop_reason").and_then(Value::as_str);
    Some((texts(parts), reason == Some("max_tokens")))
}

/// The texts of a list of parts, of which some may be something else.
pub(crate) fn texts(parts: &Value) -> String {
    let parts = parts.as_array().map(Vec::as_slice).unwrap_or_default();
    let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
    texts.collect()
}
