//! The loop detection state of one conversation: finds new steps, judges them and escalates.
//!
//! Each request repeats the conversation. New rows are those after the anchor, the last row seen.
//! If the anchor is not found, because the agent has compacted or rewound the conversation, calls
//! are recognized by their ids. A retried request has no new rows and gets the same action.

use std::collections::VecDeque;
use std::time::Duration;

use onward_core::Timestamp;
use onward_core::turn::escalation::{EscalationState, is_rejection};
use onward_core::turn::{
    Call, ExternalChange, LoopControl, OnTextLoop, State, TextLoop, TextMonitor, TurnJudge,
};
use onward_engine::session::{
    Fingerprint, HookSource, ObservedCall, ObservedStep, SessionSnapshot, StepReport,
};

use super::Action;
use crate::proxy::codec::ModelResponse;
use crate::proxy::recorder::RecordedEvent;
use crate::proxy::request::{Request, ToolCall};
use crate::proxy::turns::{self, Anchor, Delta, Prompt, Step};
use crate::seen_claims;

/// The maximum number of stored call ids and calls.
const MAX_CALLS: usize = 256;

/// How often the activity of a subagent is recorded.
const ACTIVITY_INTERVAL: Duration = Duration::from_secs(60);

/// The maximum length of a stored call input; a longer one is replaced by its digest.
const MAX_INPUT_BYTES: usize = 4_096;

/// The state of a conversation.
pub(super) struct Conversation {
    source: HookSource,
    /// Whether hooks control the session.
    is_ignored: bool,
    anchor: Option<Anchor>,
    /// The ids of the last calls.
    seen_ids: VecDeque<String>,
    /// Calls of earlier responses, which requests to Responses may omit.
    response_calls: VecDeque<ToolCall>,
    /// The `previous_response_id` of the last request, if the server stores the conversation.
    previous_response_id: Option<String>,
    judge: TurnJudge,
    /// The text to inject into the next request.
    pending_text: Option<String>,
    /// The texts of the last responses.
    texts: TextMonitor,
    on_text_loop: OnTextLoop,
    /// The note on a text loop for the next request, of this turn or the next one.
    text_note: Option<String>,
    /// The number of responses with tool calls in this turn.
    batch_count: u32,
    /// When the activity of a subagent was last recorded.
    activity_at: Option<Timestamp>,
}

/// The new steps of a request.
#[derive(Default)]
struct NewSteps {
    /// The prompt of a new turn, if one starts.
    started: Option<Prompt>,
    /// The steps of the current turn.
    steps: Vec<Step>,
    /// The steps that ended the last turn: their results are stored, but not judged.
    earlier_steps: Vec<Step>,
}

/// The result of evaluating a request.
pub(super) struct Evaluation {
    pub(super) source: HookSource,
    pub(super) action: Action,
    pub(super) user_warning: Option<String>,
    pub(super) events: Vec<RecordedEvent>,
}

impl Conversation {
    /// Restores the stored state, or starts a new conversation.
    pub(super) fn new(
        mut source: HookSource,
        snapshot: Option<SessionSnapshot>,
        control: LoopControl,
    ) -> Self {
        let mut conversation = Self::ignored(control);
        conversation.is_ignored = false;
        if let Some(snapshot) = snapshot {
            source.turn = snapshot.turn;
            conversation.seen_ids = snapshot.known_calls.into();
            conversation.judge = TurnJudge::resume(control, snapshot.state, snapshot.escalation);
        }
        conversation.source = source;
        conversation
    }

    /// A conversation controlled by hooks.
    pub(super) fn ignored(control: LoopControl) -> Self {
        Self {
            source: HookSource::default(),
            is_ignored: true,
            anchor: None,
            seen_ids: VecDeque::new(),
            response_calls: VecDeque::new(),
            previous_response_id: None,
            judge: TurnJudge::resume(control, State::default(), EscalationState::default()),
            pending_text: None,
            texts: TextMonitor::default(),
            on_text_loop: control.on_text_loop,
            text_note: None,
            batch_count: 0,
            activity_at: None,
        }
    }

    /// Finds a text of the responses that repeats itself.
    pub(super) fn observe_text(&mut self, response: &ModelResponse) -> Option<TextLoop> {
        if self.is_ignored || self.on_text_loop == OnTextLoop::Off {
            return None;
        }
        let has_calls = !response.calls.is_empty();
        let found = self.texts.observe(&response.text, has_calls)?;
        if self.on_text_loop == OnTextLoop::Nudge {
            self.text_note = Some(format!("Repeated text: {found}."));
        }
        Some(found)
    }

    /// Whether hooks monitor the session.
    pub(super) fn is_ignored(&self) -> bool {
        self.is_ignored
    }

    /// Evaluates the new steps of a request, unless the conversation is ignored.
    pub(super) fn evaluate(
        &mut self,
        request: &Request<'_>,
        digest: &str,
        now: Timestamp,
    ) -> Option<Evaluation> {
        if self.is_ignored {
            return None;
        }
        let mut events = Vec::new();
        let mut user_warning = None;
        let NewSteps {
            started,
            steps,
            earlier_steps,
        } = self.new_steps(request);
        let results: Vec<ObservedCall> = earlier_steps
            .into_iter()
            .flat_map(|step| step.into_observed_calls(|id| self.response_call(id)))
            .collect();
        if !results.is_empty() {
            let source = self.source.clone();
            events.push(RecordedEvent::ResultsReceived(source, results));
        }
        if let Some(prompt) = started {
            self.begin_turn(&prompt, digest);
            events.push(RecordedEvent::TurnStarted(self.source.clone()));
        }
        if !steps.is_empty() {
            self.pending_text = None;
        }
        for step in steps {
            let observed = self.observe(step, now);
            if let Some(judged) = &observed.judged {
                self.pending_text = judged.to_agent.clone().or(self.pending_text.take());
                user_warning = judged.to_user.clone().or(user_warning);
            }
            events.push(RecordedEvent::StepCompleted(
                self.source.clone(),
                Box::new(observed),
            ));
        }
        events.extend(self.subagent_activity(now));
        let action = match &self.pending_text {
            _ if self.judge.is_text_only() => Action::TextOnly {
                reminder: self.judge.reminder(),
                final_message: self.judge.final_message(),
            },
            Some(text) => Action::Inject(text.clone()),
            None => match self.text_note.take() {
                Some(note) => Action::Inject(note),
                None => Action::Forward,
            },
        };
        Some(Evaluation {
            source: self.source.clone(),
            action,
            user_warning,
            events,
        })
    }

    fn new_steps(&mut self, request: &Request<'_>) -> NewSteps {
        if let Some(previous) = request.previous_response_id() {
            let delta = turns::delta(request, None);
            let is_retry = self.previous_response_id.replace(previous.clone()) == Some(previous);
            return if is_retry {
                NewSteps::default()
            } else {
                NewSteps {
                    started: delta.prompt.or_else(|| self.unseen_turn(request)),
                    steps: delta.steps,
                    earlier_steps: delta.earlier_steps,
                }
            };
        }
        let Delta {
            continues,
            prompt,
            mut steps,
            mut earlier_steps,
            anchor,
        } = turns::delta(request, self.anchor.as_ref());
        self.anchor = anchor;
        // A prompt in the new rows starts a turn, even with the same text as before. So does a
        // prompt without steps: the user restarts the conversation.
        let is_new = continues || steps.is_empty();
        let started = match prompt {
            Some(prompt) if self.is_same_turn(&prompt, is_new) => None,
            Some(prompt) => Some(prompt),
            None => self.unseen_turn(request),
        };
        if !continues {
            let is_seen = |id: &str| self.seen_ids.iter().any(|seen| seen == id);
            let seen = steps
                .iter()
                .rposition(|step| step.result_ids().any(is_seen));
            let new = match (seen, &started) {
                (Some(seen), _) => seen + 1,
                // All steps of a turn that was not seen before are new.
                (None, Some(_)) => 0,
                (None, None) => steps.len().saturating_sub(1),
            };
            steps.drain(..new.min(steps.len()));
        }
        // The results before a prompt that was seen before were seen as well.
        if !continues || started.is_none() {
            earlier_steps.clear();
        }
        NewSteps {
            started,
            steps,
            earlier_steps,
        }
    }

    /// The activity of a subagent, at most once per [`ACTIVITY_INTERVAL`].
    fn subagent_activity(&mut self, now: Timestamp) -> Option<RecordedEvent> {
        let is_due = self
            .activity_at
            .is_none_or(|last| now.since(last) >= ACTIVITY_INTERVAL);
        if self.source.subagent.is_empty() || !is_due {
            return None;
        }
        self.activity_at = Some(now);
        Some(RecordedEvent::SubagentActive(self.source.clone()))
    }

    /// Whether a request continues this conversation.
    pub(super) fn is_continued_by(&self, request: &Request<'_>, is_in_flight: bool) -> bool {
        let is_answered = is_in_flight || self.batch_count > 0;
        let anchor = self.anchor.as_ref();
        anchor.is_none_or(|anchor| anchor.is_continued_by(request, is_answered))
    }

    /// Whether the last call that was seen is among those with these digests.
    pub(super) fn is_anchored_in(&self, digests: &[String]) -> bool {
        let anchor = self.anchor.as_ref();
        anchor.is_some_and(|anchor| anchor.is_one_of(digests))
    }

    /// A call of an earlier response.
    fn response_call(&self, id: &str) -> Option<ToolCall> {
        let mut calls = self.response_calls.iter().rev();
        calls.find(|call| call.id == id).cloned()
    }

    /// A prompt for a turn whose beginning was not seen.
    fn unseen_turn(&self, request: &Request<'_>) -> Option<Prompt> {
        self.source.turn.is_none().then(|| Prompt {
            row: request.rows().len(),
            digest: String::new(),
            is_summary: false,
        })
    }

    /// Whether a prompt belongs to the current turn.
    fn is_same_turn(&self, prompt: &Prompt, is_new: bool) -> bool {
        let Some(turn) = &self.source.turn else {
            return false;
        };
        if prompt.is_summary {
            return true;
        }
        let mut parts = turn.split('.').skip(1);
        let (digest, row) = (parts.next(), parts.next());
        let row: Option<usize> = row.and_then(|row| row.parse().ok());
        let same = digest == Some(&prompt.digest) && row.is_some_and(|row| prompt.row <= row);
        same && !is_new
    }

    fn begin_turn(&mut self, prompt: &Prompt, digest: &str) {
        self.source.turn = Some(format!("{digest}.{}.{}", prompt.digest, prompt.row));
        self.reset();
    }

    fn reset(&mut self) {
        self.judge.begin_turn();
        self.pending_text = None;
        self.batch_count = 0;
    }

    /// Judges a step.
    fn observe(&mut self, step: Step, now: Timestamp) -> ObservedStep {
        let mut calls = step.into_observed_calls(|id| self.response_call(id));
        for call in &mut calls {
            // A reused id is a different call here, but would identify the first one in the
            // database.
            if call
                .id
                .as_ref()
                .is_some_and(|id| self.seen_ids.contains(id))
            {
                call.id = None;
            } else {
                self.seen_ids.extend(call.id.clone());
            }
        }
        let surplus = self.seen_ids.len().saturating_sub(MAX_CALLS);
        self.seen_ids.drain(..surplus);
        let executed: Vec<Call<'_>> = calls
            .iter()
            .filter(|call| !is_rejection(&call.output))
            .map(ObservedCall::as_call)
            .collect();
        let judged = (!executed.is_empty()).then(|| {
            self.judge
                .observe(&executed, ExternalChange::Unknown, None, now)
        });
        ObservedStep {
            claims: seen_claims::find(&calls),
            calls,
            report: StepReport::Batch,
            fingerprint: Fingerprint::Unavailable,
            plans: Vec::new(),
            judged,
        }
    }

    /// Counts a response with tool calls, and returns its source and its batch number.
    pub(super) fn next_batch(&mut self) -> (HookSource, u32) {
        self.batch_count = self.batch_count.saturating_add(1);
        (self.source.clone(), self.batch_count)
    }

    /// Stores the calls of a response, which later requests may omit.
    pub(super) fn store_calls(&mut self, calls: Vec<ToolCall>) {
        for mut call in calls {
            // A digest suffices to recognize a long input.
            let input = call.input.to_string();
            if input.len() > MAX_INPUT_BYTES {
                call.input = turns::digest(&[&input]).into();
            }
            self.response_calls.push_back(call);
        }
        let surplus = self.response_calls.len().saturating_sub(MAX_CALLS);
        self.response_calls.drain(..surplus);
    }

    /// Ends the turn after a text answer.
    pub(super) fn end_turn(&mut self) -> HookSource {
        self.reset();
        self.source.clone()
    }
}
