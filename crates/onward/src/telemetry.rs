//! Logs on standard error, and traces to an OTLP collector.
//!
//! `ONWARD_LOG` sets the log filter (`info`, `onward=debug`, …). The default is warnings, with
//! `--verbose` also info. `ONWARD_LOG_FORMAT=json` selects one JSON object per line. If
//! `OTEL_EXPORTER_OTLP_ENDPOINT` is set, spans are sent there (OTLP over HTTP); failed exports are
//! logged. Logs contain routes, tools and codes, never tokens, headers or bodies. Repeated warnings
//! are logged once a minute (`repeats.rs`).

mod repeats;

use std::fmt;
use std::io;
use std::time::Duration;

use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{Bytes, HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Handle;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt as lines};

use crate::failure::{Failure, Result};
use repeats::{LineFormat, WithoutRepeats};

const FILTER: &str = "ONWARD_LOG";
const FORMAT: &str = "ONWARD_LOG_FORMAT";
const COLLECTORS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
];
/// Maximum log levels of dependencies. Below these levels they log headers and bodies, or client
/// errors that the operator cannot fix.
const LEVEL_LIMITS: [&str; 8] = [
    "rmcp=warn",
    "rmcp::service=off",
    "hyper=info",
    "hyper_util=info",
    "reqwest=info",
    "rustls=info",
    "tokio_postgres=info",
    "tower_http=info",
];
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
        None => EnvFilter::new("warn"),
    };
    // These limits apply even if the filter allows more.
    let limits = LEVEL_LIMITS.iter().filter_map(|part| part.parse().ok());
    let filter = limits.fold(filter, EnvFilter::add_directive);
    let log: Box<dyn Layer<Registry> + Send + Sync> = match variable(FORMAT).as_deref() {
        Some("json") => lines::layer()
            .json()
            .map_event_format(|format| WithoutRepeats::new(format, LineFormat::Json))
            .with_writer(io::stderr)
            .boxed(),
        Some("text") | None => lines::layer()
            .with_ansi(coloured)
            .map_event_format(|format| WithoutRepeats::new(format, LineFormat::Text))
            .with_writer(io::stderr)
            .boxed(),
        Some(_) => {
            return Err(Failure::usage(
                format!("invalid `{FORMAT}`: must be `text` or `json`"),
                "correct or unset the variable",
            ));
        }
    };
    let traces = match COLLECTORS.iter().any(|name| variable(name).is_some()) {
        true => Some(collector()?),
        false => None,
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
