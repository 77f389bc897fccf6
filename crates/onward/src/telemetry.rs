//! What the process tells about itself while it runs: a log on standard error, and traces to a
//! collector where one is named.
//!
//! `ONWARD_LOG` says what is logged (`info`, `onward=debug`, …); without it, warnings, and with
//! `--verbose` what happens. `ONWARD_LOG_FORMAT=json` makes it one object a line. Where
//! `OTEL_EXPORTER_OTLP_ENDPOINT` is set, spans are sent there (OTLP over HTTP); that they cannot be
//! delivered is logged, and disturbs nothing. What is logged names routes, tools and codes, never
//! tokens, headers or bodies.

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

const FILTER: &str = "ONWARD_LOG";
const FORMAT: &str = "ONWARD_LOG_FORMAT";
const COLLECTORS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
];
/// What others' parts are allowed to tell. A client that asks for what is not there, or hangs up, is
/// nothing that whoever runs the server can do something about.
const DISCREET: [&str; 8] = [
    "rmcp=warn",
    "rmcp::service=off",
    "hyper=info",
    "hyper_util=info",
    "reqwest=info",
    "rustls=info",
    "tokio_postgres=info",
    "tower_http=info",
];
/// How long a delivery may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is told, until it is ended.
pub(crate) struct Telemetry {
    traces: Option<SdkTracerProvider>,
}

/// Begins to tell. Must be called on a runtime of several threads, which traces are sent from.
pub(crate) fn start(verbose: bool, coloured: bool) -> Result<Telemetry> {
    let filter = match variable(FILTER) {
        Some(text) => text.parse::<EnvFilter>().map_err(|why| {
            Failure::usage(
                format!("the variable `{FILTER}` cannot be used: {why}"),
                format!("such as `{FILTER}=info`, or `{FILTER}=onward=debug`"),
            )
        })?,
        None if verbose => EnvFilter::new("warn,onward=info"),
        None => EnvFilter::new("warn"),
    };
    // Whatever is asked for: below this, these tell of headers and bodies.
    let discreet = DISCREET.iter().filter_map(|part| part.parse().ok());
    let filter = discreet.fold(filter, EnvFilter::add_directive);
    let log: Box<dyn Layer<Registry> + Send + Sync> = match variable(FORMAT).as_deref() {
        Some("json") => lines::layer().json().with_writer(io::stderr).boxed(),
        Some("text") | None => lines::layer()
            .with_ansi(coloured)
            .with_writer(io::stderr)
            .boxed(),
        Some(_) => {
            return Err(Failure::usage(
                format!("the variable `{FORMAT}` is neither `text` nor `json`"),
                "correct the variable, or unset it",
            ));
        }
    };
    let traces = match COLLECTORS.iter().any(|name| variable(name).is_some()) {
        true => Some(collector()?),
        false => None,
    };
    let sent = traces.as_ref().map(|traces| {
        let spans = EnvFilter::new("off,onward=info");
        tracing_opentelemetry::layer()
            .with_tracer(traces.tracer("onward"))
            .with_filter(spans)
    });
    let registry = tracing_subscriber::registry()
        .with(log.with_filter(filter))
        .with(sent);
    registry.try_init().map_err(|why| {
        Failure::failed(
            format!("the log cannot be begun: {why}"),
            "this is a bug of Onward",
        )
    })?;
    Ok(Telemetry { traces })
}

impl Telemetry {
    /// Sends what is still to be sent.
    pub(crate) async fn end(self) {
        let Some(traces) = self.traces else { return };
        // It waits for a thread of its own, which waits for this runtime.
        let ended = tokio::task::spawn_blocking(move || traces.shutdown()).await;
        if let Ok(Err(why)) = ended {
            tracing::warn!(%why, "the last traces were not delivered");
        }
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn collector() -> Result<SdkTracerProvider> {
    let wrong = |why: &dyn fmt::Display| {
        Failure::usage(
            format!("traces cannot be sent: {why}"),
            "correct the variables `OTEL_EXPORTER_OTLP_…`, or unset them",
        )
    };
    let client = reqwest::Client::builder()
        .timeout(PATIENCE)
        .build()
        .map_err(|why| wrong(&why))?;
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(Courier {
            client,
            runtime: Handle::current(),
        })
        .build()
        .map_err(|why| wrong(&why))?;
    let resource = Resource::builder().with_service_name("onward").build();
    Ok(SdkTracerProvider::builder()
        .with_resource(resource)
        .with_batch_exporter(exporter)
        .build())
}

/// Delivers from the runtime: the exporter calls from a thread that has none.
struct Courier {
    client: reqwest::Client,
    runtime: Handle,
}

impl fmt::Debug for Courier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Courier")
    }
}

#[async_trait::async_trait]
impl HttpClient for Courier {
    async fn send_bytes(
        &self,
        request: axum::http::Request<Bytes>,
    ) -> std::result::Result<axum::http::Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let sent = self.runtime.spawn(async move {
            let request = reqwest::Request::try_from(request)?;
            let answer = client.execute(request).await?;
            let mut response = axum::http::Response::builder().status(answer.status());
            if let Some(headers) = response.headers_mut() {
                headers.clone_from(answer.headers());
            }
            let body = answer.bytes().await?;
            Ok::<_, HttpError>(response.body(body)?)
        });
        sent.await?
    }
}
