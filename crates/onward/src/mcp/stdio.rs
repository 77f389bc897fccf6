//! The stdio transport: one JSON message per line.
//!
//! Pipes and sockets, which agent hosts use, are polled by the async runtime, because waking a
//! thread per message costs more than most messages. Anything else (a terminal, a file) gets a
//! reader thread and a writer thread. A client that neither reads nor writes blocks neither the
//! sweep nor shutdown.
//!
//! An unparsable line gets an error response, as a tool error if it is a tool call. End of input, a
//! broken pipe and a termination signal have the same effect: running calls complete, their
//! responses are written, and [`Stdio`] returns no more messages.

#[cfg(unix)]
mod pipes;
/// Other systems use threads for all kinds of streams.
#[cfg(not(unix))]
mod pipes {
    pub(super) type Input = tokio::io::Empty;
    pub(super) type Output = tokio::io::Sink;

    pub(super) fn input() -> Option<Input> {
        None
    }

    pub(super) fn output() -> Option<Output> {
        None
    }
}

use std::collections::HashSet;
use std::io::{self, BufRead, Write};
use std::thread;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ClientNotification, ErrorCode, ErrorData, GetExtensions, JsonRpcMessage, RequestId,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use crate::tools::raw;

/// The longest accepted line. Longer ones are discarded while they are read.
const MAX_LINE: usize = 32 * 1024 * 1024;
/// Bytes kept from each end of an oversized line, to find the request id.
const EDGE: usize = 512;
const READ_BUFFER: usize = 64 * 1024;
/// Messages queued in each direction.
const QUEUE: usize = 256;
/// How long running calls delay the end of the input. The SDK then waits for them for five seconds.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the last responses may take to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// A received line.
enum Line {
    Complete(Vec<u8>),
    TooLong { begin: Vec<u8>, end: Vec<u8> },
}

/// The connection to the client.
pub(crate) struct Stdio {
    lines: mpsc::Receiver<Line>,
    outgoing: Option<mpsc::Sender<Vec<u8>>>,
    /// Resolves when the writer has finished.
    written: Option<oneshot::Receiver<()>>,
    closing: watch::Sender<bool>,
    /// The requests that have no response yet.
    unanswered: watch::Sender<HashSet<RequestId>>,
    /// When [`Self::drain`] times out.
    drain_until: Option<Instant>,
}

impl Stdio {
    /// Takes over standard input and output of this process. Setting `closing` to true ends the
    /// connection.
    pub(crate) fn open(closing: watch::Sender<bool>) -> io::Result<Self> {
        let (read, lines) = mpsc::channel(QUEUE);
        let (outgoing, to_write) = mpsc::channel(QUEUE);
        let (done, written) = oneshot::channel();
        // Reader and writer are not joined: they may block on the client until the process exits.
        match pipes::input() {
            Some(input) => drop(tokio::spawn(read_async(input, read))),
            None => thread("stdin", move || {
                read_blocking(&mut io::stdin().lock(), &read)
            })?,
        }
        let shutdown = closing.clone();
        let finish = move |written: io::Result<()>| {
            if written.is_err() {
                shutdown.send_replace(true);
            }
            // The receiver may have timed out.
            let _ = done.send(());
        };
        match pipes::output() {
            Some(output) => drop(tokio::spawn(async move {
                finish(write_async(output, to_write).await);
            })),
            None => thread("stdout", move || {
                finish(write_blocking(&mut io::stdout().lock(), to_write));
            })?,
        }
        Ok(Self {
            lines,
            outgoing: Some(outgoing),
            written: Some(written),
            closing,
            unanswered: watch::Sender::default(),
            drain_until: None,
        })
    }

    /// Counts a request as unanswered. A cancelled request gets no response.
    fn track(&self, message: &RxJsonRpcMessage<RoleServer>) {
        match message {
            JsonRpcMessage::Request(request) => self.unanswered.send_modify(|ids| {
                ids.insert(request.id.clone());
            }),
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.answered(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
    }

    fn answered(&self, id: &RequestId) {
        self.unanswered.send_if_modified(|ids| ids.remove(id));
    }

    /// Waits until every request has a response. A handler may wait for the SDK's loop to confirm a
    /// message, and the end of the input ends that loop. The loop drops this future at every other
    /// event and calls again.
    async fn drain(&mut self) {
        let start = || Instant::now() + DRAIN_TIMEOUT;
        let deadline = *self.drain_until.get_or_insert_with(start);
        let mut unanswered = self.unanswered.subscribe();
        drop(tokio::time::timeout_at(deadline, unanswered.wait_for(HashSet::is_empty)).await);
    }

    async fn send_error(&self, error: ErrorData, id: Option<RequestId>) {
        let message = TxJsonRpcMessage::<RoleServer>::error(error, id);
        if let (Some(outgoing), Ok(line)) = (&self.outgoing, encode(&message)) {
            // The writer handles a disconnected client.
            drop(outgoing.send(line).await);
        }
    }
}

fn encode(message: &TxJsonRpcMessage<RoleServer>) -> Result<Vec<u8>, serde_json::Error> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

impl Transport<RoleServer> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let line = encode(&message);
        match &message {
            JsonRpcMessage::Response(response) => self.answered(&response.id),
            JsonRpcMessage::Error(error) => error.id.iter().for_each(|id| self.answered(id)),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {}
        }
        let outgoing = self.outgoing.clone();
        async move {
            let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
            let outgoing = outgoing.ok_or_else(closed)?;
            outgoing.send(line?).await.map_err(|_| closed())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let mut closing = self.closing.subscribe();
        loop {
            let line = tokio::select! {
                line = self.lines.recv() => line,
                _ = closing.wait_for(|closing| *closing) => None,
            };
            let Some(line) = line else {
                self.closing.send_replace(true);
                self.drain().await;
                return None;
            };
            let (error, id) = match line {
                Line::TooLong { begin, end } => {
                    let message = format!("message too long: the limit is {MAX_LINE} bytes");
                    let limit = serde_json::json!({ "limit": MAX_LINE });
                    let error = ErrorData::invalid_request(message, Some(limit));
                    (error, find_id(&begin, &end))
                }
                Line::Complete(bytes) => match parse_line(&bytes) {
                    Ok(message) => {
                        self.track(&message);
                        return Some(message);
                    }
                    Err(rejected) => rejected,
                },
            };
            self.send_error(error, id).await;
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.outgoing = None;
        if let Some(written) = self.written.take() {
            // Do not wait for a client that does not read.
            drop(tokio::time::timeout(FLUSH_TIMEOUT, written).await);
        }
        Ok(())
    }
}

/// The message of a line, or the error and the id of the request if it can be found.
pub(crate) fn parse_line(
    bytes: &[u8],
) -> Result<RxJsonRpcMessage<RoleServer>, (ErrorData, Option<RequestId>)> {
    let parsed = serde_json::from_slice(bytes).ok();
    parsed
        .or_else(|| unparsed_call(bytes))
        .ok_or_else(|| parse_error(bytes))
}

/// A tool call with arguments that the parser rejects. The server answers it with a tool error.
fn unparsed_call(bytes: &[u8]) -> Option<RxJsonRpcMessage<RoleServer>> {
    let (message, invalid) = raw::read_tool_call(bytes)?;
    let mut message: RxJsonRpcMessage<RoleServer> = serde_json::from_value(message).ok()?;
    if let JsonRpcMessage::Request(request) = &mut message {
        request.request.extensions_mut().insert(invalid);
    }
    Some(message)
}

/// The error for an invalid line, and the id of the request if it can be found.
fn parse_error(bytes: &[u8]) -> (ErrorData, Option<RequestId>) {
    match serde_json::from_slice::<Value>(bytes) {
        Ok(value) => {
            let id = value.get("id").cloned();
            let id = id.and_then(|id| serde_json::from_value(id).ok());
            let error = ErrorData::invalid_request("not an MCP message", None);
            (error, id)
        }
        Err(why) => {
            let message = format!("invalid JSON: {why}");
            let error = ErrorData::new(ErrorCode::PARSE_ERROR, message, None);
            (error, find_id(bytes, bytes))
        }
    }
}

/// Finds the id of a message that cannot be parsed as a whole. Official clients write it either
/// first or last.
fn find_id(begin: &[u8], end: &[u8]) -> Option<RequestId> {
    const KEY: &str = "\"id\":";
    let edge = begin.get(..EDGE.min(begin.len()))?;
    let begin = String::from_utf8_lossy(edge).into_owned();
    let method = begin.find("\"method\"").unwrap_or(0);
    let first = begin.find(KEY).filter(|at| *at < method);
    let first = first.and_then(|at| begin.get(at + KEY.len()..));
    let from = end.len().saturating_sub(EDGE);
    let end = String::from_utf8_lossy(end.get(from..)?).into_owned();
    let last = end.trim_end().strip_suffix('}').and_then(|end| {
        let at = end.rfind(KEY)? + KEY.len();
        // Anything else after it means that the id belongs to a nested object.
        end.get(at..).filter(|id| !id.contains(['{', '}', ',']))
    });
    first.or(last).and_then(|text| {
        let mut values = serde_json::Deserializer::from_str(text.trim_start()).into_iter::<Value>();
        serde_json::from_value(values.next()?.ok()?).ok()
    })
}

/// A line that is being received.
#[derive(Default)]
struct LineBuffer {
    line: Vec<u8>,
    /// The first bytes of an oversized line.
    begin: Option<Vec<u8>>,
}

impl LineBuffer {
    /// Consumes bytes up to the end of the line. Returns their number, and the line if it is
    /// complete.
    fn push(&mut self, bytes: &[u8]) -> (usize, Option<Line>) {
        let newline = bytes.iter().position(|byte| *byte == b'\n');
        let consumed = newline.map_or(bytes.len(), |at| at + 1);
        let line = &mut self.line;
        line.extend_from_slice(bytes.get(..consumed).unwrap_or_default());
        if line.len() > MAX_LINE {
            let begin = || line.get(..EDGE).unwrap_or_default().to_vec();
            self.begin.get_or_insert_with(begin);
        }
        if self.begin.is_some() && line.len() > EDGE {
            line.drain(..line.len() - EDGE);
            line.shrink_to(EDGE);
        }
        (consumed, newline.and_then(|_| self.finish()))
    }

    /// Takes the line, unless it is blank. The last line may end without a newline.
    fn finish(&mut self) -> Option<Line> {
        let Self { line, begin } = std::mem::take(self);
        match begin {
            Some(begin) => Some(Line::TooLong { begin, end: line }),
            None if line.trim_ascii().is_empty() => None,
            None => Some(Line::Complete(line)),
        }
    }
}

/// Reads lines until the client closes the input or the receiver is dropped.
async fn read_async(from: pipes::Input, to: mpsc::Sender<Line>) {
    let mut from = BufReader::with_capacity(READ_BUFFER, from);
    let mut buffer = LineBuffer::default();
    // A read error counts as end of input.
    while let Ok(bytes @ [_, ..]) = from.fill_buf().await {
        let (consumed, line) = buffer.push(bytes);
        from.consume(consumed);
        if let Some(line) = line
            && to.send(line).await.is_err()
        {
            return;
        }
    }
    if let Some(line) = buffer.finish() {
        drop(to.send(line).await);
    }
}

/// [`read_async`] for a separate thread.
fn read_blocking(from: &mut impl BufRead, to: &mpsc::Sender<Line>) {
    let mut buffer = LineBuffer::default();
    loop {
        let (consumed, line) = match from.fill_buf() {
            Ok([]) => break,
            Ok(bytes) => buffer.push(bytes),
            Err(why) if why.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        from.consume(consumed);
        if line.is_some_and(|line| to.blocking_send(line).is_err()) {
            return;
        }
    }
    if let Some(line) = buffer.finish() {
        drop(to.blocking_send(line));
    }
}

/// Writes lines until all senders are dropped.
async fn write_async(mut to: pipes::Output, mut lines: mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
    while let Some(line) = lines.recv().await {
        to.write_all(&line).await?;
    }
    Ok(())
}

/// [`write_async`] for a separate thread.
fn write_blocking(to: &mut impl Write, mut lines: mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
    while let Some(line) = lines.blocking_recv() {
        to.write_all(&line)?;
        // Write all queued lines with one flush.
        while let Ok(line) = lines.try_recv() {
            to.write_all(&line)?;
        }
        to.flush()?;
    }
    Ok(())
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let thread = thread::Builder::new().name(name.to_owned());
    thread.spawn(work).map(drop)
}
