//! Joins the spans of tool calls to the HTTP request and to the client's trace: W3C Trace Context in
//! `_meta` (SEP-414).

use axum::http::request::Parts;
use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};
use rmcp::model::{Extensions, RequestMetaObject};
use tracing::{Instrument, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt;

use crate::request_id::RequestId;

/// The span of a tool call, as a child of the client's span if the request names one.
pub(super) fn span(tool: &str, meta: &RequestMetaObject) -> Span {
    let span = tracing::info_span!("tools/call", tool);
    if let Some(parent) = meta.get_traceparent().and_then(parse) {
        // Fails only if no collector is configured.
        drop(span.set_parent(Context::new().with_remote_span_context(parent)));
    }
    span
}

/// Serves a part of an HTTP request with its id and its span: the SDK calls handlers in other tasks.
pub(super) async fn in_http_request<T>(
    extensions: &Extensions,
    part: impl Future<Output = T>,
) -> T {
    let Some(id) = of_http::<RequestId>(extensions) else {
        return part.await;
    };
    let span = of_http::<Span>(extensions).cloned();
    let part = id.clone().scope(part);
    part.instrument(span.unwrap_or_else(Span::none)).await
}

/// A value that the HTTP server added to the request.
pub(super) fn of_http<T: Send + Sync + 'static>(extensions: &Extensions) -> Option<&T> {
    extensions.get::<Parts>()?.extensions.get()
}

/// A `traceparent`. `None` if it is invalid: then the span starts a trace.
fn parse(header: &str) -> Option<SpanContext> {
    let mut parts = header.split('-');
    let (version, trace, span, flags) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_hex = |text: &str, digits: usize| {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        text.len() == digits && text.bytes().all(is_digit)
    };
    let valid = is_hex(version, 2) && is_hex(trace, 32) && is_hex(span, 16) && is_hex(flags, 2);
    // Later versions may append parts.
    if !valid || version == "ff" || (version == "00" && parts.next().is_some()) {
        return None;
    }
    let flags = u8::from_str_radix(flags, 16).ok()?;
    let context = SpanContext::new(
        TraceId::from_hex(trace).ok()?,
        SpanId::from_hex(span).ok()?,
        TraceFlags::new(flags) & TraceFlags::SAMPLED,
        true,
        TraceState::default(),
    );
    context.is_valid().then_some(context)
}

#[cfg(test)]
mod tests {
    use super::parse;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    #[test]
    fn reads_a_trace_parent() {
        for (header, sampled) in [
            (format!("00-{TRACE}-{SPAN}-01"), true),
            (format!("00-{TRACE}-{SPAN}-00"), false),
            (format!("42-{TRACE}-{SPAN}-03-more"), true),
        ] {
            let context = parse(&header);
            let context = context.unwrap_or_else(|| panic!("{header}"));
            assert_eq!(context.trace_id().to_string(), TRACE);
            assert_eq!(context.span_id().to_string(), SPAN);
            assert_eq!((context.is_sampled(), context.is_remote()), (sampled, true));
        }
    }

    #[test]
    fn ignores_an_invalid_trace_parent() {
        for header in [
            String::new(),
            format!("00-{TRACE}-{SPAN}"),
            format!("00-{TRACE}-{SPAN}-01-more"),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
            format!("00-{}-{SPAN}-01", "0".repeat(32)),
            format!("00-{TRACE}-{}-01", "0".repeat(16)),
            format!("00-{TRACE}-{SPAN}-é"),
        ] {
            assert!(parse(&header).is_none(), "{header}");
        }
    }
}
