//! What chunks mean: asked of a model, in batches, by one of the processes on a database, for as long as
//! there are chunks that the model of today has not seen.
//!
//! Those chunks are the queue, and there is no other: whoever takes over after a crash, or after a change
//! of the model, finds what is left to do in the database. How a model is asked is not known here; a
//! model that does not answer stops nothing but this, and is asked again later.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use onward_core::Timestamp;
use onward_core::role::Permission;
use onward_core::search::Vector;
use onward_store::{Embedded, IndexHealth, Lead, Waiting};
use tokio::sync::{Notify, watch};
use uuid::Uuid;

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;

/// How long chunks that another process has stored can stay unnoticed.
const LOOK: Duration = Duration::from_secs(2);
/// After trouble the model is asked again this much later, then twice as much, up to the longest.
const AGAIN: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(120);
/// So long after trouble a search does not wait for the model.
const SPARED: Duration = Duration::from_secs(30);
/// How many artifacts and outputs are cut anew in one transaction.
const PIECE: u32 = 16;
/// A text that every model takes.
const PLAIN: &str = "onward";

/// What a text is embedded for: some models want to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Somebody looks for something, and waits.
    Query,
    /// It is to be found.
    Chunk,
}

/// Why there are no numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotEmbedded {
    /// The model does not answer, or not with what was asked for. Later it may.
    Away(String),
    /// It does not take these texts.
    Refused(String),
}

/// The numbers of each text, in their order.
pub type Embedding<'a> =
    Pin<Box<dyn Future<Output = Result<Vec<Vec<f32>>, NotEmbedded>> + Send + 'a>>;

/// A model that says what texts mean.
pub trait Embedder: Send + Sync {
    /// Its name. What it said under another name is not compared with what it says under this one.
    fn model(&self) -> &str;
    /// How many texts it takes at once.
    fn batch(&self) -> u32;
    /// Asks it. Ends within a bounded time.
    fn embed(&self, texts: Vec<String>, purpose: Purpose) -> Embedding<'_>;
}

/// What went wrong last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// When.
    pub at: Timestamp,
    /// What.
    pub why: String,
}

/// A model, and how it does.
pub(crate) struct Meaning {
    embedder: Arc<dyn Embedder>,
    bell: Notify,
    trouble: Mutex<Option<Trouble>>,
}

impl Meaning {
    /// The name of the model.
    pub(crate) fn model(&self) -> &str {
        self.embedder.model()
    }

    fn note(&self, trouble: Option<Trouble>) {
        // Whoever panicked held it for an assignment: it is whole.
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    fn trouble(&self) -> Option<Trouble> {
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        trouble.clone()
    }
}

/// What one round did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EmbedRound {
    /// Chunks that can be found by what they mean from now on.
    pub embedded: u64,
    /// Chunks that the model does not take.
    pub refused: u64,
}

/// Why a round ended early.
#[derive(Debug, Clone, thiserror::Error)]
pub enum EmbedError {
    /// The model does not answer.
    #[error("the embedding model does not answer: {0}")]
    Model(String),
    /// The database does not.
    #[error(transparent)]
    Engine(#[from] Error),
}

impl From<onward_store::Error> for EmbedError {
    fn from(why: onward_store::Error) -> Self {
        EmbedError::Engine(why.into())
    }
}

/// How much of what is stored can be found, and by what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHealth {
    /// The chunks.
    pub index: IndexHealth,
    /// The model; none where only words are searched.
    pub model: Option<String>,
    /// What went wrong last, if nothing went right since, as far as this process knows.
    pub trouble: Option<Trouble>,
}

/// What was cut anew.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reindexed {
    /// Artifacts and outputs.
    pub sources: u64,
    /// The chunks that they have now.
    pub chunks: u64,
}

impl Engine {
    /// The same engine, with a model that says what texts mean.
    pub fn with_embedder(mut self, embedder: Arc<dyn Embedder>) -> Self {
        self.meaning = Some(Arc::new(Meaning {
            embedder,
            bell: Notify::new(),
            trouble: Mutex::default(),
        }));
        self
    }

    /// Something was stored.
    pub(crate) fn ring_for_meaning(&self) {
        if let Some(meaning) = &self.meaning {
            meaning.bell.notify_one();
        }
    }

    /// What a query means, and by which model; nothing where no model says so in time.
    pub(crate) async fn meaning_of(&self, query: &str) -> Option<(Vector, Arc<str>)> {
        let meaning = self.meaning.as_ref()?;
        let spared = |trouble: &Trouble| self.now().since(trouble.at) < SPARED;
        if meaning.trouble().as_ref().is_some_and(spared) {
            return None;
        }
        let asked = vec![query.to_owned()];
        let embedded = meaning.embedder.embed(asked, Purpose::Query).await;
        let vector = match embedded {
            Ok(numbers) => numbers.first().and_then(|numbers| Vector::of(numbers)),
            Err(NotEmbedded::Refused(_)) => None,
            Err(NotEmbedded::Away(why)) => {
                let at = self.now();
                meaning.note(Some(Trouble { at, why }));
                return None;
            }
        };
        meaning.note(None);
        Some((vector?, Arc::from(meaning.embedder.model())))
    }

    /// Asks the model about chunks until it is told to stop: as soon as no other process on the database
    /// does. Ends at once where there is no model.
    pub async fn keep_embedding(
        &self,
        mut stop: watch::Receiver<bool>,
        mut tell: impl FnMut(&Result<EmbedRound, EmbedError>) + Send,
    ) {
        let Some(meaning) = self.meaning.clone() else {
            return;
        };
        let mut pause = AGAIN;
        while !*stop.borrow() {
            let leading = tokio::select! {
                leading = self.store.lead(Lead::Embed) => leading,
                _ = stop.wait_for(|stop| *stop) => return,
            };
            let Ok(mut leading) = leading else {
                tokio::select! {
                    () = tokio::time::sleep(AGAIN) => continue,
                    _ = stop.wait_for(|stop| *stop) => return,
                }
            };
            while !leading.is_lost() {
                let round = tokio::select! {
                    round = self.embed_waiting() => round,
                    _ = stop.wait_for(|stop| *stop) => return,
                };
                tell(&round);
                let nap = match &round {
                    Ok(_) => LOOK,
                    Err(_) => pause,
                };
                pause = if round.is_ok() {
                    AGAIN
                } else {
                    LONGEST.min(pause * 2)
                };
                tokio::select! {
                    () = tokio::time::sleep(nap) => {}
                    // What is stored while the model is away waits with the rest.
                    () = meaning.bell.notified(), if round.is_ok() => {}
                    () = leading.lost() => {}
                    _ = stop.wait_for(|stop| *stop) => return,
                }
            }
        }
    }

    /// Asks the model about every chunk of every tenant that it has not seen.
    pub async fn embed_waiting(&self) -> Result<EmbedRound, EmbedError> {
        let mut round = EmbedRound::default();
        let Some(meaning) = &self.meaning else {
            return Ok(round);
        };
        let model: Arc<str> = Arc::from(meaning.embedder.model());
        for tenant in self.tenants().await? {
            loop {
                let (of, batch) = (Arc::clone(&model), meaning.embedder.batch());
                let waiting = self.store.read(&tenant.name, move |tx| {
                    let of = Arc::clone(&of);
                    Box::pin(async move { tx.chunks_waiting(&of, batch).await })
                });
                let waiting: Vec<Waiting> = waiting.await.map_err(Error::from)?;
                if waiting.is_empty() {
                    break;
                }
                let embedded = match ask(&*meaning.embedder, &waiting).await {
                    Ok(embedded) => embedded,
                    Err(why) => {
                        let at = self.now();
                        let trouble = Trouble {
                            at,
                            why: why.clone(),
                        };
                        meaning.note(Some(trouble));
                        return Err(EmbedError::Model(why));
                    }
                };
                meaning.note(None);
                let refused = embedded.iter().filter(|(_, has)| !has).count();
                round.refused += u64::try_from(refused).unwrap_or(u64::MAX);
                round.embedded += u64::try_from(embedded.len() - refused).unwrap_or(u64::MAX);
                let (of, embedded) = (Arc::clone(&model), Arc::new(embedded));
                let kept = self.store.write(&tenant.name, move |tx| {
                    let (of, embedded) = (Arc::clone(&of), Arc::clone(&embedded));
                    Box::pin(async move {
                        for (embedded, _) in embedded.iter() {
                            tx.set_vector(&of, embedded);
                        }
                        Ok::<(), Error>(())
                    })
                });
                kept.await?;
            }
        }
        Ok(round)
    }

    /// How much of what is stored can be found, and by what.
    pub async fn search_health(&self, caller: &Caller) -> Result<SearchHealth, Error> {
        caller.allow(Permission::Read)?;
        let meaning = self.meaning.as_ref();
        let model = meaning.map(|meaning| meaning.embedder.model().to_owned());
        let of = model.clone();
        let index = self.store.read(&caller.tenant, move |tx| {
            let of = of.clone();
            Box::pin(async move { tx.index_health(of.as_deref()).await })
        });
        Ok(SearchHealth {
            index: index.await?,
            model,
            trouble: meaning.and_then(|meaning| meaning.trouble()),
        })
    }

    /// Cuts everything that is searched into chunks anew, words and all. What it meant is forgotten, and
    /// the model is asked about it again.
    pub async fn reindex(&self, caller: &Caller) -> Result<Reindexed, Error> {
        caller.allow(Permission::ManageTenant)?;
        let mut done = Reindexed::default();
        // First, for it would be in the way of what is made anew.
        let lost = self.store.write(&caller.tenant, |tx| {
            Box::pin(async {
                tx.drop_lost_index();
                Ok::<(), onward_store::Error>(())
            })
        });
        lost.await?;
        let mut behind = Uuid::nil();
        loop {
            let page = self.store.write(&caller.tenant, move |tx| {
                Box::pin(async move { tx.reindex_page(behind, PIECE).await })
            });
            let page: Option<(Uuid, u64, u64)> = page.await.map_err(Error::Store)?;
            let Some((last, sources, chunks)) = page else {
                break;
            };
            behind = last;
            done.sources += sources;
            done.chunks += chunks;
        }
        self.ring_for_meaning();
        Ok(done)
    }
}

/// What the model says of each of these chunks, and whether it said anything.
async fn ask(
    embedder: &dyn Embedder,
    waiting: &[Waiting],
) -> Result<Vec<(Embedded, bool)>, String> {
    let texts: Vec<String> = waiting.iter().map(spoken).collect();
    let numbers = match embedder.embed(texts.clone(), Purpose::Chunk).await {
        Ok(numbers) if numbers.len() == texts.len() => numbers.into_iter().map(Some).collect(),
        Ok(numbers) => {
            return Err(format!(
                "{} vectors for {} texts",
                numbers.len(),
                texts.len()
            ));
        }
        Err(NotEmbedded::Away(why)) => return Err(why),
        Err(NotEmbedded::Refused(why)) => apart(embedder, texts, why).await?,
    };
    let vectors = numbers.into_iter().map(|numbers| Vector::of(&numbers?));
    let said = waiting.iter().zip(vectors);
    let said = said.map(|(chunk, vector)| {
        let has = vector.is_some();
        (chunk.embedded(vector), has)
    });
    Ok(said.collect())
}

/// One after the other: which of them does it refuse? One that refuses even the plainest text is set up
/// wrongly, and no chunk is to blame.
async fn apart(
    embedder: &dyn Embedder,
    texts: Vec<String>,
    why: String,
) -> Result<Vec<Option<Vec<f32>>>, String> {
    let plain = embedder.embed(vec![PLAIN.to_owned()], Purpose::Chunk).await;
    if plain.is_err() {
        return Err(why);
    }
    let mut all = Vec::with_capacity(texts.len());
    for text in texts {
        all.push(match embedder.embed(vec![text], Purpose::Chunk).await {
            Ok(numbers) => numbers.into_iter().next(),
            Err(NotEmbedded::Refused(_)) => None,
            Err(NotEmbedded::Away(why)) => return Err(why),
        });
    }
    Ok(all)
}

/// A chunk as the model is shown it: what it belongs to says half of what it means.
fn spoken(chunk: &Waiting) -> String {
    format!("{}\n\n{}", chunk.title, chunk.text)
}
