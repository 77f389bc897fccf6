//! One conversation: which steps of it are new, how they are judged, and what that leads to.
//!
//! A request repeats everything that was said, so what is new is what comes after the place that was seen
//! last. Where that place is not found again (the agent has shortened the conversation, or gone back in
//! it), calls are known by their ids. A request that is sent once more brings nothing new, and is
//! answered with the same course.

use std::collections::VecDeque;

use onward_core::Timestamp;
use onward_core::turn::ladder::{self, Rung, Standing};
use onward_core::turn::{
    Call, LoopControl, Observation, Outside, ProgressDetector, State, TurnPolicy,
};
use onward_engine::session::{Fingerprint, Heard, Recalled, SeenCall, SeenStep};

use super::Course;
use crate::proxy::record::Note;
use crate::proxy::request::{Anchor, Asked, Look, Prompt, Request, Step, digest};

/// How many calls are remembered.
const KNOWN: usize = 256;

/// How long the input of a call may be that is remembered as it is.
const LONGEST: usize = 4_096;

/// What is thought of a conversation.
pub(super) struct Mind {
    heard: Heard,
    /// Whether somebody else watches it.
    is_others: bool,
    anchor: Option<Anchor>,
    /// The ids of calls that were seen last.
    known: VecDeque<String>,
    /// Calls that were made and are not part of the requests.
    asked: VecDeque<Asked>,
    /// The answer that the last request went on from, where the server remembers the conversation.
    previous: Option<String>,
    detector: ProgressDetector,
    standing: Standing,
    /// What the model is told with the next request.
    saying: Option<String>,
    /// How many of its answers in this turn have called tools.
    batches: u32,
}

/// What came of looking at a request.
pub(super) struct Judged {
    pub(super) heard: Heard,
    pub(super) course: Course,
    pub(super) to_person: Option<String>,
    pub(super) notes: Vec<Note>,
}

impl Mind {
    /// Goes on where somebody left off, or begins.
    pub(super) fn new(mut heard: Heard, recalled: Option<Recalled>, control: LoopControl) -> Self {
        let mut mind = Self::of_others();
        mind.is_others = false;
        if let Some(recalled) = recalled {
            heard.turn = recalled.turn;
            mind.standing = recalled.standing;
            mind.known = recalled.known_calls.into();
            mind.detector = ProgressDetector::resume(control.turn, recalled.state);
        } else {
            mind.detector = ProgressDetector::new(control.turn);
        }
        mind.heard = heard;
        mind
    }

    /// A conversation that somebody else watches.
    pub(super) fn of_others() -> Self {
        Self {
            heard: Heard::default(),
            is_others: true,
            anchor: None,
            known: VecDeque::new(),
            asked: VecDeque::new(),
            previous: None,
            detector: ProgressDetector::resume(TurnPolicy::default(), State::default()),
            standing: Standing::default(),
            saying: None,
            batches: 0,
        }
    }

    /// Judges what a request brings; nothing where that is somebody else's business.
    pub(super) fn judge(
        &mut self,
        request: &Request<'_>,
        head: &str,
        now: Timestamp,
        control: LoopControl,
    ) -> Option<Judged> {
        if self.is_others {
            return None;
        }
        let mut notes = Vec::new();
        let mut to_person = None;
        let (begins, steps) = self.news(request);
        if let Some(prompt) = begins {
            self.begin(&prompt, head);
            notes.push(Note::Began(self.heard.clone()));
        }
        if !steps.is_empty() {
            self.saying = None;
        }
        for step in steps {
            let (seen, rung) = self.observe(step, now, control);
            match rung {
                Rung::Ground => {}
                Rung::Nudge => self.saying = Some(ladder::nudge(&self.standing, Outside::Unknown)),
                Rung::Reminder => self.saying = Some(self.reminder()),
                Rung::Warning => to_person = Some(ladder::for_person(&self.standing)),
            }
            notes.push(Note::Stepped(self.heard.clone(), seen));
        }
        let course = match &self.saying {
            _ if control.is_closed(&self.standing) => Course::TextOnly {
                reminder: self.reminder(),
                last_words: ladder::last_words(&self.standing),
            },
            Some(words) => Course::Say(words.clone()),
            None => Course::Pass,
        };
        Some(Judged {
            heard: self.heard.clone(),
            course,
            to_person,
            notes,
        })
    }

    /// Which turn begins, if one does, and which steps are new.
    fn news(&mut self, request: &Request<'_>) -> (Option<Prompt>, Vec<Step>) {
        if let Some(previous) = request.previous() {
            let look = request.look(None);
            let again = self.previous.replace(previous.clone()) == Some(previous);
            return match again {
                true => (None, Vec::new()),
                false => (look.prompt.or_else(|| self.first(request)), look.steps),
            };
        }
        let Look {
            goes_on,
            prompt,
            mut steps,
            anchor,
        } = request.look(self.anchor.as_ref());
        self.anchor = anchor;
        // In what is new a message is a new one, even if it says the same; and so it is where nothing
        // was done about it yet: somebody asks the same from the beginning.
        let fresh = goes_on || steps.is_empty();
        let begins = match prompt {
            Some(prompt) if self.is_same_turn(&prompt, fresh) => None,
            Some(prompt) => Some(prompt),
            None => self.first(request),
        };
        if !goes_on {
            let known = |id: &str| self.known.iter().any(|seen| seen == id);
            let seen = steps.iter().rposition(|step| step.ids().any(known));
            let new = match (seen, &begins) {
                (Some(seen), _) => seen + 1,
                // Nobody has seen this turn: all of it is since the last request.
                (None, Some(_)) => 0,
                (None, None) => steps.len().saturating_sub(1),
            };
            steps.drain(..new.min(steps.len()));
        }
        (begins, steps)
    }

    /// A turn whose beginning nobody saw.
    fn first(&self, request: &Request<'_>) -> Option<Prompt> {
        self.heard.turn.is_none().then(|| Prompt {
            row: request.rows().len(),
            digest: String::new(),
            is_summary: false,
        })
    }

    /// Whether a message that was found last belongs to the turn that is known.
    fn is_same_turn(&self, prompt: &Prompt, fresh: bool) -> bool {
        let Some(turn) = &self.heard.turn else {
            return false;
        };
        if prompt.is_summary {
            return true;
        }
        let mut parts = turn.split('.').skip(1);
        let (digest, row) = (parts.next(), parts.next());
        let row: Option<usize> = row.and_then(|row| row.parse().ok());
        let same = digest == Some(&prompt.digest) && row.is_some_and(|row| prompt.row <= row);
        same && !fresh
    }

    fn begin(&mut self, prompt: &Prompt, head: &str) {
        self.heard.turn = Some(format!("{head}.{}.{}", prompt.digest, prompt.row));
        self.afresh();
    }

    fn afresh(&mut self) {
        self.detector.begin_turn();
        self.standing = Standing::default();
        self.saying = None;
        self.batches = 0;
    }

    fn observe(&mut self, step: Step, now: Timestamp, control: LoopControl) -> (SeenStep, Rung) {
        let asked = &self.asked;
        let mut calls = step.seen(|id| asked.iter().rev().find(|call| call.id == id).cloned());
        for call in &mut calls {
            // An id that comes again is another call here, and would be the same one in the record.
            let again = call.id.as_ref().is_some_and(|id| self.known.contains(id));
            match again {
                true => call.id = None,
                false => self.known.extend(call.id.clone()),
            }
        }
        let surplus = self.known.len().saturating_sub(KNOWN);
        self.known.drain(..surplus);
        let shown: Vec<Call<'_>> = calls.iter().map(shown).collect();
        let verdict = self.detector.observe(&Observation {
            calls: &shown,
            outside: Outside::Unknown,
            at: Some(now),
            background: false,
        });
        let rung = control.after_step(&mut self.standing, &verdict);
        let seen = SeenStep {
            calls,
            whole: true,
            fingerprint: Fingerprint::None,
            plans: Vec::new(),
        };
        (seen, rung)
    }

    fn reminder(&self) -> String {
        let state = self.detector.state();
        ladder::reminder(&self.standing, Outside::Unknown, &state.evidence)
    }

    /// The model calls tools once more: in which turn, and for the how manieth time.
    pub(super) fn calls(&mut self) -> (Heard, u32) {
        self.batches = self.batches.saturating_add(1);
        (self.heard.clone(), self.batches)
    }

    /// What the model called, which later requests may not repeat.
    pub(super) fn called(&mut self, calls: Vec<Asked>) {
        for mut call in calls {
            // A whole file that is written need not be kept to be known again.
            let input = call.input.to_string();
            if input.len() > LONGEST {
                call.input = digest(&[&input]).into();
            }
            self.asked.push_back(call);
        }
        let surplus = self.asked.len().saturating_sub(KNOWN);
        self.asked.drain(..surplus);
    }

    /// The agent was answered in text.
    pub(super) fn answered(&mut self) -> Heard {
        self.afresh();
        self.heard.clone()
    }
}

fn shown(call: &SeenCall) -> Call<'_> {
    Call {
        tool: &call.tool,
        input: &call.input,
        ok: call.ok,
        output: &call.output,
    }
}
