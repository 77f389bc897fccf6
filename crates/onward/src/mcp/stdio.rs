//! Messages over standard input and output, a line each.
//!
//! Pipes and sockets, which is what agents' hosts give us, are waited for along with everything else: to
//! wake a thread for each message would cost more than most messages. Anything else (a terminal, a file)
//! has a thread that reads and one that writes. Either way a client which neither sends nor takes
//! anything holds nobody up: not the sweep, and not the end.
//!
//! What cannot be read is answered with an error and
//! passed over. A client that is gone, one that has closed its end, and a signal to stop all come to
//! the same: [`Stdio`] has no more messages, what runs is finished, and what was answered is written.

mod ends;

use std::io::{self, BufRead, Write};
use std::thread;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ErrorCode, ErrorData, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot, watch};

/// The longest line that is read. Longer ones are passed over without being kept.
const LONGEST: usize = 32 * 1024 * 1024;
/// How much of a line is kept of its beginning and its end, to find out whom to answer.
const EDGE: usize = 512;
/// How much is read at once.
const BUFFER: usize = 64 * 1024;
/// How many messages wait to be handled, and to be written.
const QUEUE: usize = 256;
/// How long the last answers may take to be written.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A line that came in.
enum Line {
    Whole(Vec<u8>),
    TooLong { begin: Vec<u8>, end: Vec<u8> },
}

/// The way to the client and back.
pub(crate) struct Stdio {
    lines: mpsc::Receiver<Line>,
    answers: Option<mpsc::Sender<Vec<u8>>>,
    written: Option<oneshot::Receiver<()>>,
    closing: watch::Sender<bool>,
}

impl Stdio {
    /// Takes over this process's standard input and output. Whoever sends true ends it.
    pub(crate) fn open(closing: watch::Sender<bool>) -> io::Result<Self> {
        let (read, lines) = mpsc::channel(QUEUE);
        let (answers, to_write) = mpsc::channel(QUEUE);
        let (done, written) = oneshot::channel();
        // Neither is waited for: whoever waits for the client ends with the process.
        match ends::input() {
            Some(input) => drop(tokio::spawn(read_polled(input, read))),
            None => thread("stdin", move || {
                read_blocked(&mut io::stdin().lock(), &read)
            })?,
        }
        let gone = closing.clone();
        let ended = move |written: io::Result<()>| {
            if written.is_err() {
                gone.send_replace(true);
            }
            // Nobody waits any more where the end came first.
            let _ = done.send(());
        };
        match ends::output() {
            Some(output) => drop(tokio::spawn(async move {
                ended(write_polled(output, to_write).await);
            })),
            None => thread("stdout", move || {
                ended(write_blocked(&mut io::stdout().lock(), to_write));
            })?,
        }
        Ok(Self {
            lines,
            answers: Some(answers),
            written: Some(written),
            closing,
        })
    }

    async fn complain(&self, error: ErrorData, to: Option<RequestId>) {
        let message = TxJsonRpcMessage::<RoleServer>::error(error, to);
        if let (Some(answers), Ok(line)) = (&self.answers, line(&message)) {
            // A client that is gone is noticed elsewhere.
            drop(answers.send(line).await);
        }
    }
}

fn line(message: &TxJsonRpcMessage<RoleServer>) -> Result<Vec<u8>, serde_json::Error> {
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
        let line = line(&message);
        let answers = self.answers.clone();
        async move {
            let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
            let answers = answers.ok_or_else(closed)?;
            answers.send(line?).await.map_err(|_| closed())
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
                // Whoever has sent something waits to hear from the SDK's loop that it is sent, and the
                // loop ends with this answer. The first turn lets what is under way be sent, the second
                // lets the loop see that before it sees the end.
                tokio::task::yield_now().await;
                tokio::task::yield_now().await;
                return None;
            };
            let (error, to) = match line {
                Line::TooLong { begin, end } => {
                    let message = format!("a message may have {LONGEST} bytes at most");
                    (ErrorData::invalid_request(message, None), id(&begin, &end))
                }
                Line::Whole(bytes) => match serde_json::from_slice(&bytes) {
                    Ok(message) => return Some(message),
                    Err(_) => misread(&bytes),
                },
            };
            self.complain(error, to).await;
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.answers = None;
        if let Some(written) = self.written.take() {
            // A client that takes nothing is not waited for.
            drop(tokio::time::timeout(LAST_WORDS, written).await);
        }
        Ok(())
    }
}

/// What is wrong with a line, and whose question it was, if that can be seen.
fn misread(bytes: &[u8]) -> (ErrorData, Option<RequestId>) {
    match serde_json::from_slice::<Value>(bytes) {
        Ok(value) => {
            let to = value.get("id").cloned();
            let to = to.and_then(|to| serde_json::from_value(to).ok());
            let error = ErrorData::invalid_request("this is no message of MCP", None);
            (error, to)
        }
        Err(why) => {
            let message = format!("this is no JSON: {why}");
            let error = ErrorData::new(ErrorCode::PARSE_ERROR, message, None);
            (error, id(bytes, bytes))
        }
    }
}

/// The id of a message that cannot be read as a whole: official clients put it either right at the
/// beginning or right at the end.
fn id(begin: &[u8], end: &[u8]) -> Option<RequestId> {
    const MARK: &str = "\"id\":";
    let edge = begin.get(..EDGE.min(begin.len()))?;
    let begin = String::from_utf8_lossy(edge).into_owned();
    let method = begin.find("\"method\"").unwrap_or(0);
    let first = begin.find(MARK).filter(|at| *at < method);
    let first = first.and_then(|at| begin.get(at + MARK.len()..));
    let from = end.len().saturating_sub(EDGE);
    let end = String::from_utf8_lossy(end.get(from..)?).into_owned();
    let last = end.trim_end().strip_suffix('}').and_then(|end| {
        let at = end.rfind(MARK)? + MARK.len();
        // What else stands behind it belongs to something inside.
        end.get(at..).filter(|id| !id.contains(['{', '}', ',']))
    });
    first.or(last).and_then(|text| {
        let mut values = serde_json::Deserializer::from_str(text.trim_start()).into_iter::<Value>();
        serde_json::from_value(values.next()?.ok()?).ok()
    })
}

/// What has come of a line so far.
#[derive(Default)]
struct Coming {
    line: Vec<u8>,
    /// The beginning of one that is too long.
    begin: Option<Vec<u8>>,
}

impl Coming {
    /// Takes bytes up to the end of the line: how many, and the line where it is whole.
    fn take(&mut self, bytes: &[u8]) -> (usize, Option<Line>) {
        let newline = bytes.iter().position(|byte| *byte == b'\n');
        let taken = newline.map_or(bytes.len(), |at| at + 1);
        let line = &mut self.line;
        line.extend_from_slice(bytes.get(..taken).unwrap_or_default());
        if line.len() > LONGEST {
            let begin = || line.get(..EDGE).unwrap_or_default().to_vec();
            self.begin.get_or_insert_with(begin);
        }
        if self.begin.is_some() && line.len() > EDGE {
            line.drain(..line.len() - EDGE);
            line.shrink_to(EDGE);
        }
        (taken, newline.and_then(|_| self.end()))
    }

    /// What has come, unless it is nothing. A last line may end with the input instead of a newline.
    fn end(&mut self) -> Option<Line> {
        let Self { line, begin } = std::mem::take(self);
        match begin {
            Some(begin) => Some(Line::TooLong { begin, end: line }),
            None if line.trim_ascii().is_empty() => None,
            None => Some(Line::Whole(line)),
        }
    }
}

/// Until the client has closed its end, or nobody takes the lines any more.
async fn read_polled(from: ends::Input, to: mpsc::Sender<Line>) {
    let mut from = BufReader::with_capacity(BUFFER, from);
    let mut coming = Coming::default();
    // An end that cannot be read is closed.
    while let Ok(bytes @ [_, ..]) = from.fill_buf().await {
        let (taken, line) = coming.take(bytes);
        from.consume(taken);
        if let Some(line) = line
            && to.send(line).await.is_err()
        {
            return;
        }
    }
    if let Some(line) = coming.end() {
        drop(to.send(line).await);
    }
}

/// The same, on a thread of its own.
fn read_blocked(from: &mut impl BufRead, to: &mpsc::Sender<Line>) {
    let mut coming = Coming::default();
    loop {
        let (taken, line) = match from.fill_buf() {
            Ok([]) => break,
            Ok(bytes) => coming.take(bytes),
            Err(why) if why.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        from.consume(taken);
        if line.is_some_and(|line| to.blocking_send(line).is_err()) {
            return;
        }
    }
    if let Some(line) = coming.end() {
        drop(to.blocking_send(line));
    }
}

/// Until nobody has anything to say any more.
async fn write_polled(mut to: ends::Output, mut lines: mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
    while let Some(line) = lines.recv().await {
        to.write_all(&line).await?;
    }
    Ok(())
}

/// The same, on a thread of its own.
fn write_blocked(to: &mut impl Write, mut lines: mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
    while let Some(line) = lines.blocking_recv() {
        to.write_all(&line)?;
        // What is ready goes out together.
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
