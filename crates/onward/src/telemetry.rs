//! Logs on standard error, and traces to an OTLP collector.
//!
//! `ONWARD_LOG` sets the log filter (`info`, `onward=debug`, …). The default is warnings, the lines
//! about stopped plans and rejected requests, and with `--verbose` also info. `ONWARD_LOG_FORMAT=json` selects one JSON object per line. If
//! `OTEL_EXPORTER_OTLP_ENDPOINT` is set, spans are sent there (OTLP over HTTP); failed exports are
//! logged. Logs contain routes, tools and codes, never tokens, headers or bodies. Control characters
//! are escaped in both formats, so that a logged value cannot forge a line. Repeated warnings are
//! logged once a minute (`repeats.rs`).

mod repeats;

use std::fmt::{self, Write};
use std::io;
use std::time::Duration;

use onward_engine::PLAN_LOG;
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{Bytes, HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Handle;
use tracing::field::Field;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt as lines};

use crate::failure::{Failure, Result};
use crate::output::format;
use repeats::{LineFormat, WithoutRepeats};

const FILTER: &str = "ONWARD_LOG";
const FORMAT: &str = "ONWARD_LOG_FORMAT";
const COLLECTORS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
];
/// Maximum log levels of dependencies. Below these levels they log headers and bodies, or client
/// errors that the operator cannot fix. Those of database drivers are in `DRIVER_LOG_TARGETS`.
const LEVEL_LIMITS: [&str; 7] = [
    "rmcp=warn",
    "rmcp::service=off",
    "hyper=info",
    "hyper_util=info",
    "reqwest=info",
    "rustls=info",
    "tower_http=info",
];
/// Target of the log lines about requests.
pub(crate) const REQUEST_LOG: &str = "onward::request";
/// Timeout of an export.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// The process's telemetry. Call [`end`](Self::end) before exit.
pub(crate) struct Telemetry {
    traces: Option<SdkTracerProvider>,
}

/// Starts logging and tracing. Requires a multi-threaded runtime, from which traces are exported.
pub(crate) fn start(verbose: bool, coloured: bool) -> Result<Telemetry> {
    let filter = match variable(FILTER) {
        Some(text) => text.parse::<EnvFilter>().map_err(|why| {
            Failure::usage(
                format!("invalid `{FILTER}`: {why}"),
                "set it to a filter such as `info` or `onward=debug`",
            )
        })?,
        None if verbose => EnvFilter::new("warn,onward=info"),
        None => EnvFilter::new(format!("warn,{PLAN_LOG}=info,{REQUEST_LOG}=info")),
    };
    // These limits apply even if the filter allows more.
    let drivers = onward_engine::DRIVER_LOG_TARGETS.map(|target| format!("{target}=info"));
    let limits = LEVEL_LIMITS
        .into_iter()
        .chain(drivers.iter().map(String::as_str));
    let limits = limits.filter_map(|part| part.parse().ok());
    let filter = limits.fold(filter, EnvFilter::add_directive);
    let log: Box<dyn Layer<Registry> + Send + Sync> = match variable(FORMAT).as_deref() {
        Some("json") => lines::layer()
            .json()
            .map_event_format(|format| WithoutRepeats::new(format, LineFormat::Json))
            .with_writer(io::stderr)
            .boxed(),
        Some("text") | None => text_lines(io::stderr, coloured).boxed(),
        Some(_) => {
            return Err(Failure::usage(
                format!("invalid `{FORMAT}`: must be `text` or `json`"),
                "correct or unset the variable",
            ));
        }
    };
    let traces = if COLLECTORS.iter().any(|name| variable(name).is_some()) {
        Some(collector()?)
    } else {
        None
    };
    let spans = traces.as_ref().map(|traces| {
        let filter = EnvFilter::new("off,onward=info");
        tracing_opentelemetry::layer()
            .with_tracer(traces.tracer("onward"))
            .with_filter(filter)
    });
    let registry = tracing_subscriber::registry()
        .with(log.with_filter(filter))
        .with(spans);
    registry.try_init().map_err(|why| {
        Failure::failed(
            format!("cannot start logging: {why}"),
            "this is a bug in Onward; please report it",
        )
    })?;
    Ok(Telemetry { traces })
}

/// The text format: one line per event.
fn text_lines<W>(writer: W, coloured: bool) -> impl Layer<Registry> + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    lines::layer()
        .with_ansi(coloured)
        .fmt_fields(debug_fn(write_field).delimited(" "))
        .map_event_format(|format| WithoutRepeats::new(format, LineFormat::Text))
        .with_writer(writer)
}

fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    let mut line = EscapedControls(writer);
    match field.name() {
        "message" => write!(line, "{value:?}"),
        name => write!(line, "{name}={value:?}"),
    }
}

/// Escapes control characters.
struct EscapedControls<W>(W);

impl<W: Write> Write for EscapedControls<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().try_for_each(|char| {
            if format::is_control(char) {
                write!(self.0, "{}", char.escape_default())
            } else {
                self.0.write_char(char)
            }
        })
    }
}

impl Telemetry {
    /// Exports the remaining spans.
    pub(crate) async fn end(self) {
        let Some(traces) = self.traces else { return };
        // `shutdown` blocks on a thread that needs this runtime.
        let result = tokio::task::spawn_blocking(move || traces.shutdown()).await;
        if let Ok(Err(why)) = result {
            tracing::warn!(%why, "failed to export the last traces");
        }
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn collector() -> Result<SdkTracerProvider> {
    let failure = |why: &dyn fmt::Display| {
        Failure::usage(
            format!("cannot export traces: {why}"),
            "correct or unset the variables `OTEL_EXPORTER_OTLP_*`",
        )
    };
    let client = reqwest::Client::builder()
        .timeout(EXPORT_TIMEOUT)
        .build()
        .map_err(|why| failure(&why))?;
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(RuntimeClient {
            client,
            runtime: Handle::current(),
        })
        .build()
        .map_err(|why| failure(&why))?;
    let resource = Resource::builder().with_service_name("onward").build();
    Ok(SdkTracerProvider::builder()
        .with_resource(resource)
        .with_batch_exporter(exporter)
        .build())
}

/// HTTP client for the exporter, which calls from a thread outside the runtime.
struct RuntimeClient {
    client: reqwest::Client,
    runtime: Handle,
}

impl fmt::Debug for RuntimeClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RuntimeClient")
    }
}

#[async_trait::async_trait]
impl HttpClient for RuntimeClient {
    async fn send_bytes(
        &self,
        request: axum::http::Request<Bytes>,
    ) -> std::result::Result<axum::http::Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let sent = self.runtime.spawn(async move {
            let request = reqwest::Request::try_from(request)?;
            let received = client.execute(request).await?;
            let mut response = axum::http::Response::builder().status(received.status());
            if let Some(headers) = response.headers_mut() {
                headers.clone_from(received.headers());
            }
            let body = received.bytes().await?;
            Ok::<_, HttpError>(response.body(body)?)
        });
        sent.await?
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_value_cannot_forge_a_log_line() {
        let log = Log::default();
        let writer = log.clone();
        let registry = tracing_subscriber::registry();
        let registry = registry.with(text_lines(move || writer.clone(), false));
        let hostile = "a\n2026-01-01T00:00:00Z  WARN onward: forged\r\u{1b}[2J\u{9b}31m\u{2028}b";
        tracing::subscriber::with_default(registry, || {
            let span = tracing::warn_span!("request", name = %hostile, path = hostile);
            let _entered = span.enter();
            tracing::warn!(error = %hostile, text = hostile, "failed: {hostile}");
        });
        let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        let line = text.strip_suffix('\n').unwrap();
        assert!(!line.chars().any(format::is_control), "{line:?}");
        assert_eq!(line.matches("forged").count(), 5, "{line}");
    }
}
