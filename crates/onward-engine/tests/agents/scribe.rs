//! Who writes down, for an agent, what it asks for and what it is told.

use std::sync::Arc;
use std::time::Instant;

use onward_core::PlanId;
use onward_engine::Error;

use crate::answers::not_done;
use crate::history::{Call, Line, Telling, Told, What};

/// One agent's scribe.
pub struct Scribe {
    pub name: String,
    tell: Telling,
}

impl Scribe {
    pub fn new(name: String, tell: &Telling) -> Self {
        let tell = Arc::clone(tell);
        Self { name, tell }
    }

    /// Asks, and writes down what was told. None where that was no answer to work with. The text is
    /// what a refused call would have brought, and what is kept of it.
    pub async fn ask<T>(
        &self,
        call: Call,
        plan: PlanId,
        text: &str,
        asked: impl Future<Output = Result<T, Error>>,
        told: impl FnOnce(&T) -> Told,
    ) -> Option<T> {
        self.say(0, What::Asks(call));
        let since = Instant::now();
        let answer = asked.await;
        let micros = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
        let told = match &answer {
            Ok(answer) => told(answer),
            Err(why) => not_done(why, plan, text),
        };
        self.say(micros, What::Told(told));
        answer.ok()
    }

    fn say(&self, micros: u64, what: What) {
        let agent = self.name.clone();
        (self.tell)(Line {
            agent,
            micros,
            what,
        });
    }
}
