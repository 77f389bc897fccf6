//! Loop detection for every conversation: decides what the proxy does with a request.
//!
//! The decision concerns the request whose results are judged, so it is made in memory before the
//! request is sent. The recorder writes asynchronously. The database is read when a conversation is
//! first seen, and before every intervention, because the user may have turned off loop control for
//! the session. Without a database there is no loop detection. Sessions reported by hooks are
//! ignored: the hooks control them.

mod conversation;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::HeaderMap;
use onward_core::transcript::Api;
use onward_core::turn::{LoopControl, OnStall};
use onward_engine::session::{HookSource, SessionSnapshot};

use super::codec::ModelResponse;
use super::recorder::{RecordedEvent, Recorder, ToolBatch, Unavailable};
use super::request::Request;
use super::session::{RequestSource, identify};
use super::turns;
use conversation::Conversation;

/// The agent name of sessions recorded by the proxy.
const AGENT_NAME: &str = "proxy";
/// The maximum number of cached conversations.
const MAX_CONVERSATIONS: usize = 1_000;

/// The proxy's action on a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// Forwards it.
    Forward,
    /// Appends a text for the model and forwards it.
    Inject(String),
    /// Appends a reminder for the model, and accepts only a text answer.
    TextOnly {
        /// The text for the model.
        reminder: String,
        /// The text for the user if the model does not answer in text.
        final_message: String,
    },
}

/// The session, and the subagent or the digest of the conversation's beginning.
type ConversationKey = (String, String);

/// The loop detection state of all conversations.
pub(super) struct Monitor {
    control: LoopControl,
    recorder: Recorder,
    cache: Mutex<ConversationCache>,
}

#[derive(Default)]
struct ConversationCache {
    conversations: HashMap<ConversationKey, Arc<Mutex<Conversation>>>,
    /// The keys, least recently used first.
    recency: VecDeque<ConversationKey>,
    /// The conversation of each response, for APIs that store conversations on the server.
    response_ids: VecDeque<(String, ConversationKey)>,
}

/// A conversation with a request in flight.
#[derive(Clone)]
pub(super) struct ConversationHandle {
    key: ConversationKey,
    agent: &'static str,
    conversation: Arc<Mutex<Conversation>>,
}

impl Monitor {
    pub(super) fn new(control: LoopControl, recorder: Recorder) -> Self {
        Self {
            control,
            recorder,
            cache: Mutex::default(),
        }
    }

    /// Evaluates a request and decides what to do with it.
    pub(super) async fn decide(
        &self,
        headers: &HeaderMap,
        request: &Request<'_>,
    ) -> (Action, Option<ConversationHandle>) {
        let forward = (Action::Forward, None);
        if self.control.on_stall == OnStall::Off
            || !request.allows_tools()
            || turns::is_compaction_request(request)
        {
            return forward;
        }
        let (Some(now), Some(source)) = (self.recorder.now(), self.identify(headers, request))
        else {
            return forward;
        };
        let Ok(handle) = self.conversation(&source, request).await else {
            return forward;
        };
        let evaluation = {
            let mut conversation = lock(&handle.conversation);
            let digest = source.conversation.as_deref().unwrap_or_default();
            conversation.evaluate(request, digest, now)
        };
        let Some(evaluation) = evaluation else {
            // Hooks monitor the session. Only the tokens of the response are counted.
            return (Action::Forward, Some(handle));
        };
        for event in evaluation.events {
            self.recorder.record(event);
        }
        let source = evaluation.source;
        if let Some(warning) = evaluation.user_warning {
            tracing::warn!(session = %source.session, "{warning}");
        }
        // Most requests are forwarded and need no query.
        let is_off = evaluation.action != Action::Forward
            && match self
                .recorder
                .load_session(&source.session, &source.subagent)
                .await
            {
                Ok(snapshot) => snapshot.is_some_and(|snapshot| snapshot.off),
                Err(Unavailable) => true,
            };
        if is_off {
            (Action::Forward, Some(handle))
        } else {
            (evaluation.action, Some(handle))
        }
    }

    /// Records a model response: its calls, or the end of the turn.
    pub(super) fn record_response(
        &self,
        handle: &ConversationHandle,
        api: Api,
        response: ModelResponse,
    ) {
        self.record_usage(handle, &response);
        if lock(&handle.conversation).is_ignored() {
            return;
        }
        let text_loop = lock(&handle.conversation).observe_text(&response);
        if let Some(text_loop) = text_loop {
            let session = &handle.key.0;
            tracing::warn!(%session, "the agent is in a loop: {text_loop}");
        }
        if response.is_text_answer() {
            return self.end_turn(handle);
        }
        // The calls of a truncated response are not made.
        if response.finished {
            let (source, number) = lock(&handle.conversation).next_batch();
            let batch = ToolBatch {
                number,
                agent: handle.agent,
                calls: response.calls.clone(),
            };
            self.recorder
                .record(RecordedEvent::ToolsCalled(source, batch));
        }
        // Only a request to Responses may omit earlier calls.
        if api != Api::Responses {
            return;
        }
        if response.started && !response.id.is_empty() {
            let mut cache = lock(&self.cache);
            cache
                .response_ids
                .push_back((response.id, handle.key.clone()));
            let surplus = cache.response_ids.len().saturating_sub(MAX_CONVERSATIONS);
            cache.response_ids.drain(..surplus);
        }
        lock(&handle.conversation).store_calls(response.calls);
    }

    /// Records the tokens of a model response, if the API reported them.
    pub(super) fn record_usage(&self, handle: &ConversationHandle, response: &ModelResponse) {
        if let Some(usage) = response.usage {
            let session = handle.key.0.clone();
            self.recorder
                .record(RecordedEvent::UsageReported(session, usage));
        }
    }

    /// Ends the turn after a text answer and resets the escalation.
    pub(super) fn end_turn(&self, handle: &ConversationHandle) {
        let source = lock(&handle.conversation).end_turn();
        self.recorder.record(RecordedEvent::TurnEnded(source));
    }

    /// The source of a request. If the server stores the conversation, it is found by the previous
    /// response.
    fn identify(&self, headers: &HeaderMap, request: &Request<'_>) -> Option<RequestSource> {
        let named = identify(headers, request);
        let Some(previous) = request.previous_response_id() else {
            return named;
        };
        let cache = lock(&self.cache);
        let found = cache
            .response_ids
            .iter()
            .rev()
            .find(|(id, _)| *id == previous);
        match found {
            Some((_, (session, name))) => Some(RequestSource {
                session: session.clone(),
                is_named: true,
                agent: named.map_or("", |named| named.agent),
                subagent: None,
                conversation: Some(name.clone()),
            }),
            None => named,
        }
    }

    /// The conversation of a request, from the cache or the database.
    async fn conversation(
        &self,
        source: &RequestSource,
        request: &Request<'_>,
    ) -> Result<ConversationHandle, Unavailable> {
        let name = source.subagent.as_ref().or(source.conversation.as_ref());
        let name = name.cloned().unwrap_or_default();
        let source = &RequestSource {
            session: if source.is_named {
                source.session.clone()
            } else {
                lock(&self.cache).unnamed_session(&source.session, &name, request)
            },
            ..source.clone()
        };
        let key = (source.session.clone(), name);
        let agent = source.agent;
        if let Some(conversation) = lock(&self.cache).get(&key) {
            return Ok(ConversationHandle {
                key,
                agent,
                conversation,
            });
        }
        // After compaction a conversation continues with a different beginning.
        let cached = if turns::starts_with_summary(request) {
            lock(&self.cache).most_recent(&source.session)
        } else {
            None
        };
        let conversation = match cached {
            Some(conversation) => conversation,
            None => Arc::new(Mutex::new(self.load_conversation(source).await?)),
        };
        let conversation = lock(&self.cache).insert(&key, conversation);
        Ok(ConversationHandle {
            key,
            agent,
            conversation,
        })
    }

    /// Loads a conversation that is not cached.
    async fn load_conversation(&self, source: &RequestSource) -> Result<Conversation, Unavailable> {
        let mut subagent = source.subagent.clone().unwrap_or_default();
        let mut snapshot = self
            .recorder
            .load_session(&source.session, &subagent)
            .await?;
        // A second conversation in the same session belongs to a subagent.
        if let (Some(digest), None) = (&source.conversation, &source.subagent) {
            let is_cached = lock(&self.cache).most_recent(&source.session).is_some();
            let main = snapshot.as_ref().and_then(|main| main.turn.as_ref());
            if is_cached || main.is_some_and(|turn| !turn.starts_with(digest)) {
                subagent.clone_from(digest);
                snapshot = self
                    .recorder
                    .load_session(&source.session, &subagent)
                    .await?;
            }
        }
        let has_hooks = |snapshot: &SessionSnapshot| snapshot.agent != AGENT_NAME;
        if snapshot.as_ref().is_some_and(has_hooks) {
            return Ok(Conversation::ignored(self.control));
        }
        let source = HookSource {
            session: source.session.clone(),
            agent: AGENT_NAME.to_owned(),
            subagent,
            ..HookSource::default()
        };
        Ok(Conversation::new(source, snapshot, self.control))
    }
}

impl ConversationCache {
    fn get(&mut self, key: &ConversationKey) -> Option<Arc<Mutex<Conversation>>> {
        let conversation = Arc::clone(self.conversations.get(key)?);
        if self.recency.back() != Some(key) {
            self.recency.retain(|other| other != key);
            self.recency.push_back(key.clone());
        }
        Some(conversation)
    }

    /// The session of a request without a session id. Agents that start with the same prompt have
    /// the same name; they are distinguished by the conversation that the request continues. A
    /// request that continues none starts a session with the next free number.
    fn unnamed_session(&self, base: &str, name: &str, request: &Request<'_>) -> String {
        let session = |number: u32| match number {
            1 => base.to_owned(),
            number => format!("{base}-{number}"),
        };
        let next = |cached: &Vec<_>| u32::try_from(cached.len()).map_or(u32::MAX, |len| len + 1);
        let mut cached = Vec::new();
        while let Some(conversation) = self
            .conversations
            .get(&(session(next(&cached)), name.to_owned()))
        {
            cached.push(conversation);
        }
        let is_continued = |conversation: &Arc<Mutex<Conversation>>| {
            // The cache holds one reference, each request in flight another one.
            let is_in_flight = Arc::strong_count(conversation) > 1;
            lock(conversation).is_continued_by(request, is_in_flight)
        };
        let mut found = cached.iter().rposition(|one| is_continued(one));
        if found.is_none() && !cached.is_empty() {
            // Some agents omit the oldest rows.
            let digests = turns::call_digests(request);
            found = cached
                .iter()
                .rposition(|one| lock(one).is_anchored_in(&digests));
        }
        cached.truncate(found.unwrap_or(cached.len()));
        session(next(&cached))
    }

    /// The most recently used conversation of a session.
    fn most_recent(&self, session: &str) -> Option<Arc<Mutex<Conversation>>> {
        let key = self
            .recency
            .iter()
            .rev()
            .find(|(other, _)| other == session)?;
        self.conversations.get(key).map(Arc::clone)
    }

    /// Inserts a conversation unless the key is present, and evicts the least recently used ones.
    fn insert(
        &mut self,
        key: &ConversationKey,
        conversation: Arc<Mutex<Conversation>>,
    ) -> Arc<Mutex<Conversation>> {
        if let Some(cached) = self.get(key) {
            return cached;
        }
        self.conversations
            .insert(key.clone(), Arc::clone(&conversation));
        self.recency.push_back(key.clone());
        while self.recency.len() > MAX_CONVERSATIONS {
            if let Some(oldest) = self.recency.pop_front() {
                self.conversations.remove(&oldest);
            }
        }
        conversation
    }
}

/// Locks a mutex, even a poisoned one: no code panics halfway through an update.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
