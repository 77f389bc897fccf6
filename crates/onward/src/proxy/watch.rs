//! What is thought of each conversation: where its turn stands, and what the next request needs.
//!
//! A verdict decides about the very request whose results it judges, so it is made in memory, before
//! anything is sent; the record is written behind and asked only the first time that a conversation is
//! seen, and before something is done about it: a person may have switched the session off. Without a
//! database nothing is judged. A session that hooks tell of is theirs, and left alone here.

mod mind;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::HeaderMap;
use onward_core::transcript::Api;
use onward_core::turn::{LoopControl, OnStall};
use onward_engine::session::{Heard, Recalled};

use super::dialect::Answer;
use super::record::{Note, Record, Unavailable};
use super::request::Request;
use super::session::{Who, who};
use mind::Mind;

/// What sessions are named after whom the proxy tells of.
const AGENT: &str = "proxy";
/// How many conversations are thought of at once.
const MOST: usize = 1_000;

/// What is to be done about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Course {
    /// Nothing.
    Pass,
    /// The model is told something, and may do what it likes.
    Say(String),
    /// The model is told something, and may only answer in text.
    TextOnly {
        /// What it is told.
        reminder: String,
        /// What the person is told where nothing else helps.
        last_words: String,
    },
}

/// A conversation within a session: by the name of a subagent, or by its beginning.
type Key = (String, String);

/// Thinks of every conversation.
pub(super) struct Watch {
    control: LoopControl,
    record: Record,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    minds: HashMap<Key, Arc<Mutex<Mind>>>,
    /// The conversations, the one that was asked for last at the end.
    used: VecDeque<Key>,
    /// Which conversation an answer was given in, where the server remembers them.
    answers: VecDeque<(String, Key)>,
}

/// A conversation whose request is on its way.
#[derive(Clone)]
pub(super) struct Thread {
    key: Key,
    mind: Arc<Mutex<Mind>>,
}

impl Watch {
    pub(super) fn new(control: LoopControl, record: Record) -> Self {
        Self {
            control,
            record,
            known: Mutex::default(),
        }
    }

    /// Looks at a request, and says what is to be done about it.
    pub(super) async fn judge(
        &self,
        headers: &HeaderMap,
        request: &Request<'_>,
    ) -> (Course, Option<Thread>) {
        let pass = (Course::Pass, None);
        if self.control.on_stall == OnStall::Off
            || !request.can_call()
            || request.asks_for_summary()
        {
            return pass;
        }
        let (Some(now), Some(who)) = (self.record.now(), self.who(headers, request)) else {
            return pass;
        };
        let Ok(thread) = self.thread(&who, request).await else {
            return pass;
        };
        let judged = {
            let mut mind = lock(&thread.mind);
            let head = who.head.as_deref().unwrap_or_default();
            mind.judge(request, head, now, self.control)
        };
        let Some(judged) = judged else {
            return pass;
        };
        for note in judged.notes {
            self.record.note(note);
        }
        let heard = judged.heard;
        if let Some(words) = judged.to_person {
            tracing::warn!(session = %heard.session, "{words}");
        }
        // Nearly always nothing is wrong, and nobody is asked.
        let off = judged.course != Course::Pass
            && match self.record.recall(&heard.session, &heard.subagent).await {
                Ok(recalled) => recalled.is_some_and(|recalled| recalled.off),
                Err(Unavailable) => true,
            };
        match off {
            true => (Course::Pass, Some(thread)),
            false => (judged.course, Some(thread)),
        }
    }

    /// Takes in what the model answered: its calls, or that there are none.
    pub(super) fn heard(&self, thread: &Thread, api: Api, answer: Answer) {
        if answer.is_text() {
            return self.answered(thread);
        }
        // One that was cut off is no answer yet, and its calls are not made.
        if answer.finished {
            let (heard, batch) = lock(&thread.mind).calls();
            self.record
                .note(Note::Called(heard, batch, answer.calls.clone()));
        }
        // Only there the next request may leave out what was called.
        if api != Api::Responses {
            return;
        }
        if answer.started && !answer.id.is_empty() {
            let mut known = lock(&self.known);
            known.answers.push_back((answer.id, thread.key.clone()));
            let surplus = known.answers.len().saturating_sub(MOST);
            known.answers.drain(..surplus);
        }
        lock(&thread.mind).called(answer.calls);
    }

    /// The agent was answered in text: everything is normal again.
    pub(super) fn answered(&self, thread: &Thread) {
        let heard = lock(&thread.mind).answered();
        self.record.note(Note::Answered(heard));
    }

    /// Whose request it is. Where the server remembers the conversation, the answer that it goes on from
    /// tells.
    fn who(&self, headers: &HeaderMap, request: &Request<'_>) -> Option<Who> {
        let named = who(headers, request);
        let Some(previous) = request.previous() else {
            return named;
        };
        let known = lock(&self.known);
        let found = known.answers.iter().rev().find(|(id, _)| *id == previous);
        match found {
            Some((_, (session, name))) => Some(Who {
                session: session.clone(),
                subagent: None,
                head: Some(name.clone()),
            }),
            None => named,
        }
    }

    /// What is thought of the conversation, be it known or not.
    async fn thread(&self, who: &Who, request: &Request<'_>) -> Result<Thread, Unavailable> {
        let name = who.subagent.as_ref().or(who.head.as_ref());
        let key = (who.session.clone(), name.cloned().unwrap_or_default());
        if let Some(mind) = lock(&self.known).get(&key) {
            return Ok(Thread { key, mind });
        }
        let mind = match request.begins_with_summary() {
            // The conversation had become too long, and goes on under another beginning.
            true => lock(&self.known).latest_of(&who.session),
            false => None,
        };
        let mind = match mind {
            Some(mind) => mind,
            None => Arc::new(Mutex::new(self.first_sight(who).await?)),
        };
        let mind = lock(&self.known).keep(&key, mind);
        Ok(Thread { key, mind })
    }

    /// A conversation that this process sees for the first time.
    async fn first_sight(&self, who: &Who) -> Result<Mind, Unavailable> {
        let mut subagent = who.subagent.clone().unwrap_or_default();
        let mut recalled = self.record.recall(&who.session, &subagent).await?;
        // Another conversation under the same name is somebody that this agent has sent.
        if let (Some(head), None) = (&who.head, &who.subagent) {
            let seen = lock(&self.known).latest_of(&who.session).is_some();
            let main = recalled.as_ref().and_then(|main| main.turn.as_ref());
            if seen || main.is_some_and(|turn| !turn.starts_with(head)) {
                subagent.clone_from(head);
                recalled = self.record.recall(&who.session, &subagent).await?;
            }
        }
        let others = |recalled: &Recalled| recalled.agent != AGENT;
        if recalled.as_ref().is_some_and(others) {
            return Ok(Mind::of_others());
        }
        let heard = Heard {
            session: who.session.clone(),
            agent: AGENT.to_owned(),
            directory: None,
            subagent,
            turn: None,
        };
        Ok(Mind::new(heard, recalled, self.control))
    }
}

impl Known {
    fn get(&mut self, key: &Key) -> Option<Arc<Mutex<Mind>>> {
        let mind = Arc::clone(self.minds.get(key)?);
        if self.used.back() != Some(key) {
            self.used.retain(|used| used != key);
            self.used.push_back(key.clone());
        }
        Some(mind)
    }

    /// The conversation of a session that was asked for last.
    fn latest_of(&self, session: &str) -> Option<Arc<Mutex<Mind>>> {
        let key = self.used.iter().rev().find(|(of, _)| of == session)?;
        self.minds.get(key).map(Arc::clone)
    }

    /// Keeps what is thought, unless somebody was faster; what was asked for longest ago goes.
    fn keep(&mut self, key: &Key, mind: Arc<Mutex<Mind>>) -> Arc<Mutex<Mind>> {
        if let Some(known) = self.get(key) {
            return known;
        }
        self.minds.insert(key.clone(), Arc::clone(&mind));
        self.used.push_back(key.clone());
        while self.used.len() > MOST {
            if let Some(oldest) = self.used.pop_front() {
                self.minds.remove(&oldest);
            }
        }
        mind
    }
}

/// A lock that a panic elsewhere does not keep from being taken: what it guards is whole at any time.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
