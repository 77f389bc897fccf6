//! Models that are asked over HTTP: what a text means (`model/embeddings.rs`), what stands in it
//! (`model/completion.rs`).
//!
//! Nobody waits without a bound: a try has its time, tries are few, and what a server asks to be waited
//! for is waited for only where it is short. A key goes to the server and nowhere else: it is in no
//! log and in no error.

pub(crate) mod completion;
pub(crate) mod embeddings;

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::RETRY_AFTER;
use serde_json::Value;

use crate::config::Key;

/// The first pause between two tries; each further one is twice as long.
const PAUSE: Duration = Duration::from_millis(500);
/// No pause is longer, whatever a server asks for.
const LONGEST_PAUSE: Duration = Duration::from_secs(20);
/// No honest answer is larger.
const LARGEST: usize = 64 * 1024 * 1024;
/// So much of what a server says about an error is told.
const TOLD: usize = 300;

/// Why a model did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// It cannot be reached, is overloaded, or answers what nobody can read.
    Away(String),
    /// It does not want to answer this.
    Refused(String),
}

/// How often something is tried.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    pub(crate) tries: u32,
    /// For one try.
    pub(crate) timeout: Duration,
    pub(crate) pause: Duration,
}

impl Patience {
    pub(crate) fn new(tries: u32, timeout: Duration) -> Self {
        let pause = PAUSE;
        Self {
            tries,
            timeout,
            pause,
        }
    }
}

/// The way to a server. Opened when it is first used: most processes never do.
#[derive(Default)]
pub(crate) struct Line {
    client: OnceLock<Option<reqwest::Client>>,
}

/// One try that failed.
struct Failed {
    why: String,
    /// Whether another try may do better, and after how long where the server says it.
    again: Option<Option<Duration>>,
    refused: bool,
}

impl Line {
    /// Sends a question as JSON, and reads the answer.
    pub(crate) async fn ask(
        &self,
        url: &str,
        headers: &[(&'static str, String)],
        key: Option<&Key>,
        question: &Value,
        patience: Patience,
    ) -> Result<Value, Unanswered> {
        let mut pause = patience.pause;
        let mut tries = 0;
        loop {
            tries += 1;
            let failed = match self.once(url, headers, question, patience.timeout).await {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            match failed.again {
                Some(asked) if tries < patience.tries => {
                    let wait = asked.unwrap_or_else(|| jittered(pause)).min(LONGEST_PAUSE);
                    tokio::time::sleep(wait).await;
                    pause *= 2;
                }
                Some(_) | None => {
                    let why = without(failed.why, key);
                    return Err(match failed.refused {
                        true => Unanswered::Refused(why),
                        false => Unanswered::Away(why),
                    });
                }
            }
        }
    }

    async fn once(
        &self,
        url: &str,
        headers: &[(&'static str, String)],
        question: &Value,
        timeout: Duration,
    ) -> Result<Value, Failed> {
        let lost = |why: reqwest::Error| Failed {
            why: cause(&why),
            again: Some(None),
            refused: false,
        };
        let mut request = self
            .client()
            .ok_or_else(|| Failed {
                why: "TLS cannot be set up: check the authorities that this system trusts"
                    .to_owned(),
                again: None,
                refused: false,
            })?
            .post(url)
            .timeout(timeout)
            .header("content-type", "application/json")
            .body(question.to_string());
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let mut response = request.send().await.map_err(lost)?;
        let status = response.status();
        let after = retry_after(&response);
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(lost)? {
            if body.len() + piece.len() > LARGEST {
                return Err(Failed {
                    why: format!("it answers more than {LARGEST} bytes"),
                    again: None,
                    refused: false,
                });
            }
            body.extend_from_slice(&piece);
        }
        if status.is_success() {
            return serde_json::from_slice(&body).map_err(|why| Failed {
                why: format!("it answers what is no JSON: {why}"),
                again: Some(None),
                refused: false,
            });
        }
        let overloaded = status.is_server_error()
            || status == StatusCode::TOO_MANY_REQUESTS
            || status == StatusCode::REQUEST_TIMEOUT;
        let refused = [
            StatusCode::BAD_REQUEST,
            StatusCode::PAYLOAD_TOO_LARGE,
            StatusCode::UNPROCESSABLE_ENTITY,
        ];
        Err(Failed {
            why: format!("it answers {status}: {}", told(&body)),
            again: overloaded.then_some(after),
            refused: refused.contains(&status),
        })
    }

    fn client(&self) -> Option<&reqwest::Client> {
        let client = self.client.get_or_init(|| {
            // One for every part that speaks TLS; that somebody set it already is as good.
            drop(rustls::crypto::ring::default_provider().install_default());
            reqwest::Client::builder()
                .redirect(reqwest::redirect::Policy::none())
                .user_agent(concat!("onward/", env!("CARGO_PKG_VERSION")))
                .build()
                .ok()
        });
        client.as_ref()
    }
}

/// How long the server wants to be left alone.
fn retry_after(response: &reqwest::Response) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    seconds.trim().parse().ok().map(Duration::from_secs)
}

/// What a server says about an error: its message, or the beginning of whatever it says.
fn told(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let parsed: Option<Value> = serde_json::from_str(&text).ok();
    let message = parsed.as_ref().and_then(|json| {
        let error = json.get("error")?;
        error.get("message").unwrap_or(error).as_str()
    });
    let message: Vec<&str> = message.unwrap_or(&text).split_whitespace().collect();
    message.join(" ").chars().take(TOLD).collect()
}

/// What went wrong underneath, which the outer error does not say; without the address, which may hold
/// more than people should read.
fn cause(why: &reqwest::Error) -> String {
    if why.is_timeout() {
        return "it does not answer in time".to_owned();
    }
    let mut deepest: &dyn std::error::Error = why;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}

/// A text in which the key does not stand.
fn without(text: String, key: Option<&Key>) -> String {
    match key {
        Some(key) => text.replace(key.as_str(), "…"),
        None => text,
    }
}

/// A pause that is not the same for everybody who was turned away at once.
fn jittered(pause: Duration) -> Duration {
    let mut dice = [0u8; 1];
    // Without chance all come back at once, which is no error.
    let _ = getrandom::fill(&mut dice);
    pause.mul_f64(0.75 + f64::from(dice[0]) / 512.0)
}

#[cfg(test)]
pub(crate) mod tests;
