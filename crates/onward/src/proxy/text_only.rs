//! A request that must be answered in text: what is done where a server answers with calls all the same.
//!
//! It has been told that no tool may be called. If it calls one, it is asked once more, with no tools at
//! all; if it calls one even then, or cannot be asked, the turn ends with a plain sentence. What a stream
//! says in words is passed on as it comes; from its first call on, the words of the second answer come in
//! its place, so that the agent sees one answer that is whole. Nothing is held back.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use futures_util::stream;
use onward_core::transcript::Api;
use serde_json::Value;
use tokio::sync::mpsc;

use super::answer::{Events, Form};
use super::dialect::{Answer, Piece, dialect};
use super::forward::{self, Outgoing};
use super::watch::Thread;
use super::{Proxy, form};

/// A longer answer is passed on without having been read.
const LONGEST: usize = 16 << 20;
/// How many pieces of an answer may wait for the agent.
const WAITING: usize = 16;

/// What is needed to ask once more.
pub(super) struct Exchange {
    pub(super) proxy: Arc<Proxy>,
    pub(super) api: Api,
    pub(super) outgoing: Outgoing,
    /// The request as it came, repaired.
    pub(super) request: String,
    pub(super) reminder: String,
    pub(super) last_words: String,
    pub(super) thread: Thread,
}

type Pieces = mpsc::Sender<Result<Bytes, std::io::Error>>;

impl Exchange {
    /// Passes on the answer to a request that forbade tools, made right where it has to be.
    pub(super) async fn answer(self, first: reqwest::Response) -> Response {
        match form(&first) {
            Some(Form::Stream) => self.stream(first),
            Some(Form::Whole) => self.whole(first).await,
            None => forward::pass(first),
        }
    }

    async fn whole(self, first: reqwest::Response) -> Response {
        let head = forward::head(&first);
        let body = match read(first).await {
            Read::Whole(body) => body,
            Read::Other(body) => return head.map(|()| body),
        };
        let passed = |head: Response<()>, body: Bytes| head.map(|()| Body::from(body));
        let Ok(value) = serde_json::from_slice::<Value>(&body) else {
            return passed(head, body);
        };
        let mut answer = Answer::unknown();
        dialect(self.api).whole(&mut answer, &value);
        if !answer.started {
            return passed(head, body);
        }
        if answer.is_text() {
            self.proxy.watch.answered(&self.thread);
            return passed(head, body);
        }
        let again = self.ask_again().await;
        self.proxy.watch.answered(&self.thread);
        if let Some(second) = again
            && form(&second) == Some(Form::Whole)
        {
            let head = forward::head(&second);
            if let Read::Whole(body) = read(second).await
                && self.says(&body).is_some()
            {
                return passed(head, body);
            }
        }
        let sentence = dialect(self.api).sentence(value, &self.last_words);
        let mut response = head.map(|()| Body::from(sentence.to_string()));
        *response.status_mut() = StatusCode::OK;
        response.headers_mut().remove(CONTENT_LENGTH);
        let kind = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response
    }

    /// The words of an answer that has nothing else.
    fn says(&self, body: &[u8]) -> Option<String> {
        let value: Value = serde_json::from_slice(body).ok()?;
        let mut answer = Answer::unknown();
        dialect(self.api).whole(&mut answer, &value);
        (answer.is_text() && !answer.text.trim().is_empty()).then_some(answer.text)
    }

    fn stream(self, first: reqwest::Response) -> Response {
        let mut head = forward::head(&first);
        head.headers_mut().remove(CONTENT_LENGTH);
        let (pieces, taken) = mpsc::channel(WAITING);
        tokio::spawn(async move {
            tokio::select! {
                // The agent has hung up, and so do we.
                () = pieces.closed() => {}
                () = self.go_through(first, &pieces) => {}
            }
        });
        let body = stream::unfold(taken, async |mut taken| {
            let piece = taken.recv().await?;
            Some((piece, taken))
        });
        head.map(|()| Body::from_stream(body))
    }

    /// Passes on the first answer up to its first call, and then the second one.
    async fn go_through(&self, mut first: reqwest::Response, pieces: &Pieces) {
        let mut answer = Answer::unknown();
        let mut events = Events::default();
        'call: loop {
            match first.chunk().await {
                Ok(Some(bytes)) => {
                    events.push(&bytes);
                    while let Some(event) = events.next() {
                        if event.read(self.api, &mut answer) == Piece::Call {
                            break 'call;
                        }
                        send(pieces, event.raw).await;
                    }
                }
                Ok(None) => {
                    send(pieces, events.rest()).await;
                    if answer.finished {
                        self.proxy.watch.answered(&self.thread);
                    }
                    return;
                }
                Err(why) => {
                    // The agent sees what happened: an answer that breaks off.
                    drop(pieces.send(Err(std::io::Error::other(why))).await);
                    return;
                }
            }
        }
        drop(first);
        answer.finished = false;
        let mut said = Saying {
            api: self.api,
            answer,
            text: String::new(),
            begun: false,
        };
        let whole = match self.ask_again().await {
            Some(second) => self.go_on(second, &mut said, pieces).await,
            None => false,
        };
        if !whole {
            let apart = if said.text.is_empty() { "" } else { "\n\n" };
            let words = format!("{apart}{}", self.last_words);
            send(pieces, said.words(&words).into_bytes()).await;
        }
        send(pieces, said.end().into_bytes()).await;
        self.proxy.watch.answered(&self.thread);
    }

    /// Passes on the words of the second answer, and says whether it had some and nothing else.
    async fn go_on(
        &self,
        mut second: reqwest::Response,
        said: &mut Saying,
        pieces: &Pieces,
    ) -> bool {
        if form(&second) == Some(Form::Whole) {
            let Read::Whole(body) = read(second).await else {
                return false;
            };
            let Some(words) = self.says(&body) else {
                return false;
            };
            send(pieces, said.words(&words).into_bytes()).await;
            return true;
        }
        let mut events = Events::default();
        let mut answer = Answer::unknown();
        while let Ok(Some(bytes)) = second.chunk().await {
            events.push(&bytes);
            while let Some(event) = events.next() {
                match event.read(self.api, &mut answer) {
                    Piece::Text(words) => {
                        send(pieces, said.words(&words).into_bytes()).await;
                    }
                    Piece::Call => return false,
                    Piece::Other => {}
                }
            }
        }
        answer.finished && !said.text.trim().is_empty()
    }

    /// Asks once more, with no tools at all; nothing where that is not answered.
    async fn ask_again(&self) -> Option<reqwest::Response> {
        let request: Value = serde_json::from_str(&self.request).ok()?;
        let request = dialect(self.api).without_tools(request, &self.reminder);
        let sent = self
            .proxy
            .upstream
            .send(&self.outgoing, request.to_string().into());
        let answer = sent.await.ok()?;
        let readable = form(&answer).is_some();
        (answer.status().is_success() && readable).then_some(answer)
    }
}

/// Words of our own in an answer that somebody else began.
struct Saying {
    api: Api,
    answer: Answer,
    text: String,
    begun: bool,
}

impl Saying {
    fn words(&mut self, words: &str) -> String {
        let mut out = String::new();
        if !std::mem::replace(&mut self.begun, true) {
            out.push_str(&dialect(self.api).begin(&mut self.answer));
        }
        self.text.push_str(words);
        out.push_str(&dialect(self.api).piece(&mut self.answer, words));
        out
    }

    fn end(&mut self) -> String {
        dialect(self.api).end(&mut self.answer, &self.text)
    }
}

async fn send(pieces: &Pieces, bytes: impl Into<Bytes>) {
    let bytes = bytes.into();
    if !bytes.is_empty() {
        // Whoever should have taken it is gone, which ends all of this.
        drop(pieces.send(Ok(bytes)).await);
    }
}

enum Read {
    Whole(Bytes),
    /// It is too long, or it broke off: what came of it, and what is still to come.
    Other(Body),
}

/// Reads an answer, if it is not too long.
async fn read(mut answer: reqwest::Response) -> Read {
    let mut read = Vec::new();
    loop {
        match answer.chunk().await {
            Ok(Some(bytes)) => read.extend_from_slice(&bytes),
            Ok(None) => return Read::Whole(read.into()),
            Err(why) => {
                let pieces: [Result<Bytes, std::io::Error>; 2] =
                    [Ok(read.into()), Err(std::io::Error::other(why))];
                return Read::Other(Body::from_stream(stream::iter(pieces)));
            }
        }
        if read.len() > LONGEST {
            let rest = stream::unfold(answer, async |mut answer| {
                let piece = answer.chunk().await.transpose()?;
                Some((piece, answer))
            });
            let read = stream::iter([Ok(Bytes::from(read))]);
            use futures_util::StreamExt;
            return Read::Other(Body::from_stream(read.chain(rest)));
        }
    }
}
