//! What texts mean, by the protocol that OpenAI's embeddings began and that Ollama, vLLM, llama.cpp, LM
//! Studio and others speak: `POST …/embeddings`.

use std::time::Duration;

use onward_engine::embed::{Embedder, Embedding, NotEmbedded, Purpose};
use serde_json::{Value, json};

use super::{Line, Patience, Unanswered};
use crate::config::{Embeddings, Key};

/// How often a batch is tried before it is left for later.
const TRIES: u32 = 4;
/// Somebody waits for their search.
const QUERY: Duration = Duration::from_secs(3);

/// A server that says what texts mean.
pub(crate) struct Endpoint {
    line: Line,
    url: String,
    /// As the server calls it.
    called: String,
    dimensions: Option<u32>,
    key: Option<Key>,
    batch: u32,
    patience: Patience,
    /// The same, with what makes its numbers others.
    model: String,
}

impl Endpoint {
    /// The one that is configured, if one is.
    pub(crate) fn of(config: &Embeddings) -> Option<Self> {
        let (url, called) = (config.url.value.clone()?, config.model.value.clone()?);
        let dimensions = config.dimensions.value;
        let model = match dimensions {
            Some(dimensions) => format!("{called}/{dimensions}"),
            None => called.clone(),
        };
        let timeout = Duration::from_secs(config.timeout_seconds.value.into());
        Some(Self {
            line: Line::default(),
            url: endpoint(&url, "embeddings"),
            called,
            dimensions,
            key: config.key.clone(),
            batch: config.batch_size.value,
            patience: Patience::new(TRIES, timeout),
            model,
        })
    }

    /// The same, in a hurry.
    #[cfg(test)]
    pub(crate) fn hurried(mut self, timeout: Duration) -> Self {
        self.patience.pause = Duration::from_millis(1);
        self.patience.timeout = timeout;
        self
    }

    async fn asked(
        &self,
        texts: Vec<String>,
        purpose: Purpose,
    ) -> Result<Vec<Vec<f32>>, NotEmbedded> {
        let patience = match purpose {
            Purpose::Chunk => self.patience,
            Purpose::Query => Patience::new(1, self.patience.timeout.min(QUERY)),
        };
        let mut question =
            json!({ "model": self.called, "input": texts, "encoding_format": "float" });
        if let (Some(dimensions), Value::Object(question)) = (self.dimensions, &mut question) {
            question.insert("dimensions".to_owned(), dimensions.into());
        }
        let key = self.key.as_ref();
        let bearer = key.map(|key| ("authorization", format!("Bearer {}", key.as_str())));
        let headers: Vec<_> = bearer.into_iter().collect();
        let asked = self.line.ask(&self.url, &headers, key, &question, patience);
        let answer = asked.await.map_err(|why| match why {
            Unanswered::Away(why) => NotEmbedded::Away(why),
            Unanswered::Refused(why) => NotEmbedded::Refused(why),
        })?;
        let numbers = read(&answer, texts.len()).map_err(NotEmbedded::Away)?;
        let asked = self
            .dimensions
            .and_then(|asked| usize::try_from(asked).ok());
        match (numbers.first(), asked) {
            (Some(first), Some(asked)) if first.len() != asked => Err(NotEmbedded::Away(format!(
                "it answers {} dimensions where {asked} are configured",
                first.len()
            ))),
            (Some(_) | None, _) => Ok(numbers),
        }
    }
}

impl Embedder for Endpoint {
    fn model(&self) -> &str {
        &self.model
    }

    fn batch(&self) -> u32 {
        self.batch
    }

    fn embed(&self, texts: Vec<String>, purpose: Purpose) -> Embedding<'_> {
        Box::pin(self.asked(texts, purpose))
    }
}

/// An address of a server, with the path of a call where it is not there already.
pub(super) fn endpoint(url: &str, path: &str) -> String {
    let url = url.trim_end_matches('/');
    match url.ends_with(path) {
        true => url.to_owned(),
        false => format!("{url}/{path}"),
    }
}

/// The numbers of each text, in the order of the texts, whatever order they came in.
fn read(answer: &Value, texts: usize) -> Result<Vec<Vec<f32>>, String> {
    let data = answer.get("data").and_then(Value::as_array);
    let data = data.ok_or_else(|| "it answers no `data`".to_owned())?;
    if data.len() != texts {
        return Err(format!(
            "it answers {} vectors for {texts} texts",
            data.len()
        ));
    }
    let mut placed = Vec::with_capacity(texts);
    for (place, entry) in data.iter().enumerate() {
        let index = match entry.get("index") {
            Some(index) => index.as_u64().and_then(|index| usize::try_from(index).ok()),
            None => Some(place),
        };
        let numbers = entry.get("embedding").and_then(Value::as_array);
        #[allow(
            clippy::cast_possible_truncation,
            reason = "models give single precision"
        )]
        let number = |number: &Value| number.as_f64().map(|number| number as f32);
        let numbers: Option<Vec<f32>> =
            numbers.and_then(|numbers| numbers.iter().map(number).collect());
        match (index, numbers) {
            (Some(index), Some(numbers)) => placed.push((index, numbers)),
            _ => return Err("it answers an entry of `data` that holds no numbers".to_owned()),
        }
    }
    placed.sort_by_key(|(index, _)| *index);
    let each_once = placed
        .iter()
        .enumerate()
        .all(|(place, (index, _))| place == *index);
    let length = placed.first().map_or(0, |(_, numbers)| numbers.len());
    let alike = placed.iter().all(|(_, numbers)| numbers.len() == length);
    if !each_once || !alike || (length == 0 && texts > 0) {
        return Err("it answers vectors that do not fit each other".to_owned());
    }
    Ok(placed.into_iter().map(|(_, numbers)| numbers).collect())
}
