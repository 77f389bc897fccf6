//! Records the calls of one agent and their responses.

use std::sync::Arc;
use std::time::Instant;

use onward_core::PlanId;
use onward_engine::Error;

use crate::agents::history::{Call, Record, RecordKind, RecordSink, Response};
use crate::agents::responses::error_response;

pub struct Recorder {
    pub agent: String,
    sink: RecordSink,
}

impl Recorder {
    pub fn new(agent: String, sink: &RecordSink) -> Self {
        let sink = Arc::clone(sink);
        Self { agent, sink }
    }

    /// Records the call, awaits the request and records the response. Returns the value of a
    /// successful call. `text` is the content of the call, which is stored if a rule rejects it.
    pub async fn call<T>(
        &self,
        call: Call,
        plan: PlanId,
        text: &str,
        request: impl Future<Output = Result<T, Error>>,
        response: impl FnOnce(&T) -> Response,
    ) -> Option<T> {
        self.write(0, RecordKind::Call(call));
        let since = Instant::now();
        let result = request.await;
        let micros = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
        let response = match &result {
            Ok(value) => response(value),
            Err(error) => error_response(error, plan, text),
        };
        self.write(micros, RecordKind::Response(response));
        result.ok()
    }

    fn write(&self, micros: u64, kind: RecordKind) {
        let agent = self.agent.clone();
        (self.sink)(Record {
            agent,
            micros,
            kind,
        });
    }
}
