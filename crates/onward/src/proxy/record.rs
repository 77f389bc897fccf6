//! The database behind the proxy: what it remembers is asked for rarely, and written behind.
//!
//! Nothing here may hold up a request or break one. What was seen goes into a queue that one task empties,
//! in its order; where the database cannot be reached, that is said once, and the notes are lost, not
//! the requests. Asking has its time, after which the answer is that nothing is known.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use onward_core::Timestamp;
use onward_core::turn::LoopControl;
use onward_engine::ledger::{Begins, NewCall, POLICY};
use onward_engine::session::{Fingerprint, Heard, Recalled, SeenStep};
use onward_engine::{Caller, Engine, Error};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::request::Asked;

/// How long the database is asked.
const PATIENCE: Duration = Duration::from_secs(1);
/// How many notes may wait.
const WAITING: usize = 4_096;

/// Something that was seen.
pub(super) enum Note {
    /// A person wrote.
    Began(Heard),
    /// The model called tools, in the answer of its turn that has this number.
    Called(Heard, u32, Vec<Asked>),
    /// A step was answered.
    Stepped(Heard, SeenStep),
    /// The agent answered.
    Answered(Heard),
    /// Everything before this is written.
    Flush(oneshot::Sender<()>),
}

/// The database cannot be asked, which was said already.
#[derive(Debug)]
pub(super) struct Unavailable;

/// The database, as soon as it is open.
#[derive(Clone)]
pub(crate) struct Record {
    shared: Arc<Shared>,
    notes: mpsc::Sender<Note>,
}

struct Shared {
    opened: OnceLock<(Engine, Caller)>,
    control: LoopControl,
    /// Whether it was said that the database cannot be reached, since it last could.
    told: AtomicBool,
}

impl Record {
    /// A record that writes as soon as a database is given. Must be made on a runtime.
    pub(crate) fn start(control: LoopControl) -> Self {
        let shared = Arc::new(Shared {
            opened: OnceLock::new(),
            control,
            told: AtomicBool::new(false),
        });
        let (notes, waiting) = mpsc::channel(WAITING);
        tokio::spawn(write(Arc::clone(&shared), waiting));
        Self { shared, notes }
    }

    /// Gives it its database.
    pub(crate) fn open(&self, engine: Engine, caller: Caller) {
        // One that is open already is as good.
        drop(self.shared.opened.set((engine, caller)));
    }

    /// The instant that it is; none where there is no database.
    pub(super) fn now(&self) -> Option<Timestamp> {
        self.shared.opened.get().map(|(engine, _)| engine.now())
    }

    /// What is remembered of an agent; an error where that cannot be known.
    pub(super) async fn recall(
        &self,
        session: &str,
        subagent: &str,
    ) -> Result<Option<Recalled>, Unavailable> {
        let (engine, caller) = self.shared.opened.get().ok_or(Unavailable)?;
        let asked = engine.recall(caller, session, subagent);
        let asked = tokio::time::timeout(PATIENCE, asked).await;
        match asked {
            Ok(Ok(recalled)) => return Ok(recalled),
            Ok(Err(why)) => self.shared.complain(&why),
            Err(_) => self.shared.complain(&"it takes too long to answer"),
        }
        Err(Unavailable)
    }

    /// Adds a note; one too many is lost.
    pub(super) fn note(&self, note: Note) {
        if self.notes.try_send(note).is_err() {
            self.shared.complain(&"it is too slow");
        }
    }

    /// Waits until everything is written, for so long and no longer.
    pub(crate) async fn flush(&self, patience: Duration) {
        let (done, written) = oneshot::channel();
        let flushed = async {
            if self.notes.send(Note::Flush(done)).await.is_ok() {
                // Whoever should have said so is gone: then there is nothing to wait for.
                drop(written.await);
            }
        };
        if tokio::time::timeout(patience, flushed).await.is_err() {
            tracing::warn!("not everything that was seen could be written");
        }
    }
}

impl Shared {
    /// Says once that the database cannot be reached.
    fn complain(&self, why: &dyn std::fmt::Display) {
        if !self.told.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                %why,
                "the database is not available: requests pass, and turns are not watched"
            );
        }
    }
}

async fn write(shared: Arc<Shared>, mut waiting: mpsc::Receiver<Note>) {
    while let Some(note) = waiting.recv().await {
        let Some((engine, caller)) = shared.opened.get() else {
            continue;
        };
        let control = shared.control;
        let written: Result<(), Error> = match note {
            Note::Began(heard) => {
                let begun = engine.begin_turn(caller, heard, Fingerprint::None, control);
                begun.await.map(|_| ())
            }
            Note::Stepped(heard, step) => {
                let observed = engine.observe_step(caller, heard, step, control).await;
                observed.map(|observed| {
                    if let Some(why) = observed.unreadable {
                        tracing::warn!(%why, "what was remembered of a turn cannot be read");
                    }
                })
            }
            Note::Called(heard, batch, calls) => called(engine, caller, &heard, batch, calls).await,
            Note::Answered(heard) => engine.end_turn(caller, heard).await,
            Note::Flush(done) => {
                // Whoever waited may have given up.
                let _ = done.send(());
                Ok(())
            }
        };
        match written {
            Ok(()) => shared.told.store(false, Ordering::Relaxed),
            Err(why) => shared.complain(&why),
        }
    }
}

/// Keeps the calls of an answer in the ledger. The agent makes them as soon as it has read it; who
/// that is nobody knows here, so only the clock counts. Their results come all together, with the next
/// request, so each of them may take as long as the slowest.
async fn called(
    engine: &Engine,
    caller: &Caller,
    heard: &Heard,
    batch: u32,
    calls: Vec<Asked>,
) -> Result<(), Error> {
    let seen = calls.into_iter().map(|Asked { id, tool, input }| {
        // The input of a stream came in pieces of its text.
        let whole = input
            .as_str()
            .and_then(|text| serde_json::from_str(text).ok());
        let input: Value = whole.unwrap_or(input);
        NewCall::seen(Some(id), tool, input, None)
    });
    let seen: Vec<NewCall> = seen.collect();
    let limit = POLICY.longest(seen.iter().map(|call| call.limit));
    for call in seen {
        let call = NewCall {
            batch: Some(batch),
            limit,
            ..call
        };
        let recorded = engine.record_call(caller, heard.clone(), None, call, Begins::Running);
        recorded.await?;
    }
    Ok(())
}
