//! `onward proxy`: stands between an agent and its model's API, and passes everything on as it is until
//! something is wrong.
//!
//! A request of one of three APIs (`dialect.rs`, and a file for each) is read beside being passed on. A
//! conversation that the API would reject is repaired; one whose turn goes round in circles is told so
//! (`watch.rs`), and in the end answered in text (`text_only.rs`). What is not understood passes as it
//! came: another path, a body that is compressed, too long, or no JSON. Keys pass through and are neither
//! kept nor logged; what is kept of a conversation is what hooks would tell, too (`record.rs`).

mod answer;
mod anthropic;
mod chat;
mod dialect;
mod forward;
mod record;
mod request;
mod responses;
mod session;
mod text_only;
mod watch;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use futures_util::{StreamExt, stream};
use onward_core::transcript::{Api, Frontier, What, repair_document};
use onward_core::turn::LoopControl;
use tokio::net::TcpListener;
use tokio::sync::watch as channel;

use crate::failure::Result;
use crate::web::listen::listen;
use crate::web::place::Place;
use answer::{Form, Reader};
use dialect::dialect;
use forward::{Outgoing, Upstream};
pub(crate) use record::Record;
use request::{Request, edited};
use text_only::Exchange;
use watch::{Course, Thread, Watch};

/// A longer request passes without having been read. The APIs take no more than this.
const LONGEST: usize = 32 << 20;
/// How many connections there may be at once.
const CONNECTIONS: usize = 1_024;
/// How long what runs may take when the proxy stops.
const GRACE: Duration = Duration::from_secs(10);

/// A proxy that is ready to answer.
pub(crate) struct Proxy {
    upstream: Upstream,
    place: Place,
    watch: Watch,
}

impl Proxy {
    /// To this API, or to the vendors' own.
    pub(crate) fn new(
        upstream: Option<&str>,
        control: LoopControl,
        record: Record,
    ) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            upstream: Upstream::new(upstream)?,
            place: Place {
                guarded: true,
                public: None,
                origins: Vec::new(),
            },
            watch: Watch::new(control, record),
        }))
    }

    /// Answers until it is told to stop. What runs then is given its time.
    pub(crate) async fn run(
        self: Arc<Self>,
        listener: TcpListener,
        mut stop: channel::Receiver<bool>,
    ) {
        let site = Router::new().fallback(take_in).with_state(self);
        let answering = listen(listener, site, CONNECTIONS, stop.clone());
        let ending = async {
            // Whoever could say it is gone: then it is the end, too.
            drop(stop.wait_for(|stop| *stop).await);
            tokio::time::sleep(GRACE).await;
            tracing::warn!("some answers were still on their way");
        };
        tokio::select! {
            () = answering => {}
            () = ending => {}
        }
    }

    async fn answer(self: Arc<Self>, request: axum::extract::Request) -> Response {
        if self.place.check(&request).is_err() {
            return forward::failed(
                None,
                StatusCode::FORBIDDEN,
                "onward proxy: it answers programs of this machine alone; call it as `127.0.0.1` or \
                 `localhost`, and not from a web page",
            );
        }
        let (parts, body) = request.into_parts();
        let api = api(&parts);
        let Some(outgoing) = self.upstream.outgoing(&parts, api) else {
            let message = "onward proxy: the path makes no address of the API";
            return forward::failed(api, StatusCode::BAD_REQUEST, message);
        };
        let readable = !parts.headers.contains_key(CONTENT_ENCODING);
        let Some(api) = api.filter(|_| readable) else {
            return self.pass(api, outgoing, Vec::new(), body).await;
        };
        match read(body).await {
            Incoming::Whole(body) => self.converse(api, &parts.headers, outgoing, body).await,
            Incoming::Long(read, rest) => self.pass(Some(api), outgoing, read, rest).await,
            Incoming::Broken => {
                let message = "onward proxy: the request broke off; send it again";
                forward::failed(Some(api), StatusCode::BAD_REQUEST, message)
            }
        }
    }

    /// Passes on what is not looked at.
    async fn pass(
        &self,
        api: Option<Api>,
        outgoing: Outgoing,
        read: Vec<Bytes>,
        rest: Body,
    ) -> Response {
        match self.upstream.stream(outgoing, read, rest).await {
            Ok(answer) => forward::pass(answer),
            Err(why) => forward::unreached(api, &why),
        }
    }

    /// A request of an API that is here as a whole.
    async fn converse(
        self: Arc<Self>,
        api: Api,
        headers: &HeaderMap,
        mut outgoing: Outgoing,
        body: Bytes,
    ) -> Response {
        let text = std::str::from_utf8(&body).ok();
        let repaired = text.map(|text| repaired(api, text));
        let request = repaired
            .as_deref()
            .and_then(|text| Request::read(api, text));
        let Some(request) = request else {
            return self.forward(api, &outgoing, body.clone(), body, None).await;
        };
        let (course, thread) = self.watch.judge(headers, &request).await;
        let sent: Bytes = match &course {
            Course::Pass => match &repaired {
                Some(Cow::Owned(text)) => text.clone().into(),
                Some(Cow::Borrowed(_)) | None => body.clone(),
            },
            Course::Say(words) => edited(request.text, dialect(api).say(&request, words)).into(),
            Course::TextOnly { reminder, .. } => {
                let mut edits = dialect(api).say(&request, reminder);
                edits.extend(dialect(api).forbid(&request));
                edited(request.text, edits).into()
            }
        };
        let (
            Course::TextOnly {
                reminder,
                last_words,
            },
            Some(thread),
        ) = (course, thread.clone())
        else {
            return self.forward(api, &outgoing, sent, body, thread).await;
        };
        tracing::info!(
            streams = request.streams(),
            "a turn has to be answered in text"
        );
        let whole = request.text.to_owned();
        outgoing.uncompressed();
        match self.ask(&outgoing, sent, body).await {
            Ok((answer, Sent::Changed)) if answer.status().is_success() => {
                let exchange = Exchange {
                    proxy: Arc::clone(&self),
                    api,
                    outgoing,
                    request: whole,
                    reminder,
                    last_words,
                    thread,
                };
                exchange.answer(answer).await
            }
            Ok((answer, _)) => self.watched(api, answer, Some(thread)),
            Err(why) => forward::unreached(Some(api), &why),
        }
    }

    /// Sends a request, and passes on what is answered while it is read.
    async fn forward(
        self: Arc<Self>,
        api: Api,
        outgoing: &Outgoing,
        sent: Bytes,
        came: Bytes,
        thread: Option<Thread>,
    ) -> Response {
        match self.ask(outgoing, sent, came).await {
            Ok((answer, _)) => self.watched(api, answer, thread),
            Err(why) => forward::unreached(Some(api), &why),
        }
    }

    /// Sends a request. Where the API does not take what was changed of it, it goes as it came: nobody is
    /// to be worse off for what we wanted to help with.
    async fn ask(
        &self,
        outgoing: &Outgoing,
        sent: Bytes,
        came: Bytes,
    ) -> reqwest::Result<(reqwest::Response, Sent)> {
        let changed = sent != came;
        let answer = self.upstream.send(outgoing, sent).await?;
        let refused = matches!(
            answer.status(),
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY
        );
        if !changed || !refused {
            return Ok((answer, Sent::Changed));
        }
        tracing::warn!(
            status = answer.status().as_u16(),
            "the API does not take a request that was changed here; it is sent as it came"
        );
        drop(answer);
        let answer = self.upstream.send(outgoing, came).await?;
        Ok((answer, Sent::AsItCame))
    }

    /// Passes on an answer, each piece before it is read.
    fn watched(
        self: Arc<Self>,
        api: Api,
        answer: reqwest::Response,
        thread: Option<Thread>,
    ) -> Response {
        let (Some(thread), Some(form)) = (thread, form(&answer)) else {
            return forward::pass(answer);
        };
        if !answer.status().is_success() {
            return forward::pass(answer);
        }
        let head = forward::head(&answer);
        let passing = Passing {
            proxy: self,
            api,
            left: answer.content_length(),
            answer,
            reader: Some(Reader::new(api, form)),
            passed: None,
            thread,
        };
        let body = stream::unfold(Some(passing), async |passing| {
            let mut passing = passing?;
            passing.read();
            match passing.answer.chunk().await {
                Ok(Some(bytes)) => {
                    passing.passed = Some(bytes.clone());
                    Some((Ok(bytes), Some(passing)))
                }
                Ok(None) => {
                    passing.end();
                    None
                }
                Err(why) => Some((Err(why), None)),
            }
        });
        head.map(|()| Body::from_stream(body))
    }
}

/// How a request was sent in the end.
enum Sent {
    Changed,
    AsItCame,
}

/// An answer on its way.
struct Passing {
    proxy: Arc<Proxy>,
    api: Api,
    answer: reqwest::Response,
    /// How many bytes are still to come, where that is known.
    left: Option<u64>,
    reader: Option<Reader>,
    /// What was passed on and not yet read.
    passed: Option<Bytes>,
    thread: Thread,
}

impl Passing {
    fn read(&mut self) {
        let Some(passed) = self.passed.take() else {
            return;
        };
        self.left = self
            .left
            .map(|left| left.saturating_sub(passed.len() as u64));
        if let Some(reader) = &mut self.reader {
            reader.take(&passed);
        }
    }

    fn end(&mut self) {
        if let Some(reader) = self.reader.take() {
            let answer = reader.end();
            self.proxy.watch.heard(&self.thread, self.api, answer);
        }
    }
}

impl Drop for Passing {
    /// Of an answer whose length is known nobody asks for more than that: its end is not seen otherwise.
    fn drop(&mut self) {
        self.read();
        if self.left == Some(0) {
            self.end();
        }
    }
}

async fn take_in(State(proxy): State<Arc<Proxy>>, request: axum::extract::Request) -> Response {
    proxy.answer(request).await
}

/// Which API a request is of, if it is a conversation.
fn api(parts: &Parts) -> Option<Api> {
    let path = parts.uri.path().trim_end_matches('/');
    if parts.method != Method::POST {
        None
    } else if path.ends_with("/v1/messages") {
        Some(Api::Anthropic)
    } else if path.ends_with("/chat/completions") {
        Some(Api::Chat)
    } else if path.ends_with("/responses") {
        Some(Api::Responses)
    } else {
        None
    }
}

/// A request as the API takes it: the same text where it does already. What is merely untidy is left.
fn repaired(api: Api, text: &str) -> Cow<'_, str> {
    let repaired = repair_document(api, text, Frontier::Answer);
    let rejected = |what: What| match what {
        What::Dangling | What::Stale | What::Orphan | What::Doubled => true,
        // Items of Responses may stand apart from their calls.
        What::Misplaced => api != Api::Responses,
        What::BlankRow | What::DoubledRow | What::Reordered | What::Merged => false,
    };
    if !repaired.repairs.iter().any(|repair| rejected(repair.what)) {
        return Cow::Borrowed(text);
    }
    tracing::info!(
        repairs = repaired.repairs.len(),
        "a conversation that the API would reject is repaired"
    );
    repaired.text
}

/// In which form an answer comes; none where it cannot be read.
fn form(answer: &reqwest::Response) -> Option<Form> {
    let header = |name| answer.headers().get(name).map(|value| value.as_bytes());
    let plain = header(CONTENT_ENCODING).is_none_or(|coding| coding == b"identity");
    let kind = header(CONTENT_TYPE).filter(|_| plain)?;
    match kind {
        kind if kind.starts_with(b"text/event-stream") => Some(Form::Stream),
        kind if kind.starts_with(b"application/json") => Some(Form::Whole),
        _ => None,
    }
}

/// A request's body.
enum Incoming {
    Whole(Bytes),
    /// It is too long to be read: what came of it, and the rest.
    Long(Vec<Bytes>, Body),
    Broken,
}

async fn read(body: Body) -> Incoming {
    let mut rest = body.into_data_stream();
    let mut read: Vec<Bytes> = Vec::new();
    let mut length = 0;
    while let Some(piece) = rest.next().await {
        let Ok(piece) = piece else {
            return Incoming::Broken;
        };
        length += piece.len();
        read.push(piece);
        if length > LONGEST {
            return Incoming::Long(read, Body::from_stream(rest));
        }
    }
    match <[Bytes; 1]>::try_from(read) {
        Ok([only]) => Incoming::Whole(only),
        Err(several) => Incoming::Whole(several.concat().into()),
    }
}
