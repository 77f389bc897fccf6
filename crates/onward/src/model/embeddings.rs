//! Embeddings with the OpenAI embeddings API (`POST …/embeddings`), which Ollama, vLLM, llama.cpp,
//! LM Studio and others support.

use std::time::Duration;

use onward_engine::embed::{Embedder, EmbedderError, Embedding, Purpose};
use serde_json::{Value, json};

use super::{JsonClient, ModelError, RetryPolicy};
use crate::config::{ApiKey, Embeddings};

/// Attempts per batch of chunks. A failed batch is retried by the indexer later.
const ATTEMPTS: u32 = 4;
/// The timeout of a query embedding, because a caller is waiting.
const QUERY_TIMEOUT: Duration = Duration::from_secs(3);

/// A client of the configured embeddings endpoint.
pub(crate) struct EmbeddingClient {
    client: JsonClient,
    url: String,
    /// The model name on the server.
    name: String,
    dimensions: Option<u32>,
    key: Option<ApiKey>,
    batch: u32,
    policy: RetryPolicy,
    /// The model name with its dimensions, which identifies compatible vectors.
    model: String,
}

impl EmbeddingClient {
    pub(crate) fn new(config: &Embeddings) -> Self {
        let (name, dimensions) = (config.model.clone(), config.dimensions);
        let model = match dimensions {
            Some(dimensions) => format!("{name}/{dimensions}"),
            None => name.clone(),
        };
        let timeout = Duration::from_secs(config.timeout_seconds.into());
        Self {
            client: JsonClient::default(),
            url: endpoint_url(&config.url, "embeddings"),
            name,
            dimensions,
            key: config.api_key.clone(),
            batch: config.batch_size,
            policy: RetryPolicy::new(ATTEMPTS, timeout),
            model,
        }
    }

    /// Sets a short timeout and backoff.
    #[cfg(test)]
    pub(crate) fn with_timeout(mut self, timeout: Duration) -> Self {
        self.policy.backoff = Duration::from_millis(1);
        self.policy.timeout = timeout;
        self
    }

    async fn request(
        &self,
        texts: Vec<String>,
        purpose: Purpose,
    ) -> Result<Vec<Vec<f32>>, EmbedderError> {
        let policy = match purpose {
            Purpose::Chunk => self.policy,
            Purpose::Query => RetryPolicy::new(1, self.policy.timeout.min(QUERY_TIMEOUT)),
        };
        let mut body = json!({ "model": self.name, "input": texts, "encoding_format": "float" });
        if let (Some(dimensions), Value::Object(body)) = (self.dimensions, &mut body) {
            body.insert("dimensions".to_owned(), dimensions.into());
        }
        let key = self.key.as_ref();
        let bearer = key.map(|key| ("authorization", format!("Bearer {}", key.as_str())));
        let headers: Vec<_> = bearer.into_iter().collect();
        let response = self.client.post(&self.url, &headers, key, &body, policy);
        let response = response.await.map_err(|why| match why {
            ModelError::Unavailable(why) => EmbedderError::Unavailable(why),
            ModelError::Rejected(why) => EmbedderError::Rejected(why),
        })?;
        let vectors = parse(&response, texts.len()).map_err(EmbedderError::Unavailable)?;
        let expected = self.dimensions;
        let expected = expected.and_then(|expected| usize::try_from(expected).ok());
        match (vectors.first(), expected) {
            (Some(first), Some(expected)) if first.len() != expected => {
                Err(EmbedderError::Unavailable(format!(
                    "the vectors have {} dimensions, but {expected} are configured",
                    first.len()
                )))
            }
            (Some(_) | None, _) => Ok(vectors),
        }
    }
}

impl Embedder for EmbeddingClient {
    fn model(&self) -> &str {
        &self.model
    }

    fn batch(&self) -> u32 {
        self.batch
    }

    fn embed(&self, texts: Vec<String>, purpose: Purpose) -> Embedding<'_> {
        Box::pin(self.request(texts, purpose))
    }
}

/// Appends the path of a request to the base URL, unless the URL already ends with it.
pub(super) fn endpoint_url(url: &str, path: &str) -> String {
    let url = url.trim_end_matches('/');
    if url.ends_with(path) {
        url.to_owned()
    } else {
        format!("{url}/{path}")
    }
}

/// The vector of each text, in the order of the texts.
fn parse(response: &Value, texts: usize) -> Result<Vec<Vec<f32>>, String> {
    let data = response.get("data").and_then(Value::as_array);
    let data = data.ok_or_else(|| "the response has no `data`".to_owned())?;
    if data.len() != texts {
        return Err(format!(
            "the response has {} vectors for {texts} texts",
            data.len()
        ));
    }
    let mut vectors = Vec::with_capacity(texts);
    for (position, entry) in data.iter().enumerate() {
        let index = match entry.get("index") {
            Some(index) => index.as_u64().and_then(|index| usize::try_from(index).ok()),
            None => Some(position),
        };
        let numbers = entry.get("embedding").and_then(Value::as_array);
        #[allow(
            clippy::cast_possible_truncation,
            reason = "models return single precision"
        )]
        let number = |number: &Value| number.as_f64().map(|number| number as f32);
        let numbers: Option<Vec<f32>> =
            numbers.and_then(|numbers| numbers.iter().map(number).collect());
        match (index, numbers) {
            (Some(index), Some(numbers)) => vectors.push((index, numbers)),
            _ => return Err("an entry of `data` is not a vector".to_owned()),
        }
    }
    vectors.sort_by_key(|(index, _)| *index);
    let unique = vectors
        .iter()
        .enumerate()
        .all(|(position, (index, _))| position == *index);
    let length = vectors.first().map_or(0, |(_, numbers)| numbers.len());
    let same_length = vectors.iter().all(|(_, numbers)| numbers.len() == length);
    if !unique || !same_length || (length == 0 && texts > 0) {
        return Err("the vectors have duplicate indexes or different lengths".to_owned());
    }
    Ok(vectors.into_iter().map(|(_, numbers)| numbers).collect())
}
