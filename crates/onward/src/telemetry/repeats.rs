//! Repeated warnings, errors and rejected requests: the log gets the same line at most once a minute,
//! with the number of omitted ones. An outage would otherwise fill the log with one line per request.
//! Lines that differ only in a duration or in the id of the request are the same.

use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

use super::REQUEST_LOG;

/// Interval between two identical lines.
const INTERVAL: Duration = Duration::from_secs(60);
/// Maximum number of different lines to remember.
const MAX_LINES: usize = 4_096;
/// A field that differs between otherwise identical lines: a duration.
const IGNORED_FIELD: &str = "ms";

/// The same for spans.
const REQUEST_ID_FIELD: &str = "request_id";

/// How a line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineFormat {
    Text,
    /// One JSON object per line.
    Json,
}

/// Writes lines with `format`, without the repeated ones.
pub(super) struct WithoutRepeats<F> {
    format: F,
    line_format: LineFormat,
    written: Mutex<Written>,
}

impl<F> WithoutRepeats<F> {
    pub(super) fn new(format: F, line_format: LineFormat) -> Self {
        Self {
            format,
            line_format,
            written: Mutex::default(),
        }
    }
}

impl<S, N, F> FormatEvent<S, N> for WithoutRepeats<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'w> FormatFields<'w> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        // A greater level is a more verbose one.
        if *metadata.level() > Level::WARN && metadata.target() != REQUEST_LOG {
            return self.format.format_event(context, writer, event);
        }
        // A panic leaves the map valid.
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let repeated = written.admit(key(context, event), Instant::now());
        drop(written);
        match repeated {
            None => Ok(()),
            Some(0) => self.format.format_event(context, writer, event),
            Some(repeated) => {
                let mut line = String::new();
                self.format
                    .format_event(context, Writer::new(&mut line), event)?;
                writer.write_str(&with_count(&line, repeated, self.line_format))
            }
        }
    }
}

/// The line with the number of omitted ones.
fn with_count(line: &str, repeated: u64, format: LineFormat) -> String {
    let line = line.trim_end();
    match (format, line.strip_suffix('}')) {
        (LineFormat::Json, Some(fields)) => format!("{fields},\"repeated\":{repeated}}}\n"),
        (LineFormat::Json, None) | (LineFormat::Text, _) => {
            format!("{line} repeated={repeated}\n")
        }
    }
}

/// What was written recently: by key, the time and the number of lines omitted since.
#[derive(Default)]
struct Written(HashMap<u64, (Instant, u64)>);

impl Written {
    /// Whether to write a line with this key now, and how many were omitted before it.
    fn admit(&mut self, key: u64, now: Instant) -> Option<u64> {
        if let Some((at, omitted)) = self.0.get_mut(&key) {
            if now.saturating_duration_since(*at) < INTERVAL {
                *omitted += 1;
                return None;
            }
            *at = now;
            return Some(std::mem::take(omitted));
        }
        if self.0.len() >= MAX_LINES {
            self.0
                .retain(|_, (at, _)| now.saturating_duration_since(*at) < INTERVAL);
        }
        if self.0.len() >= MAX_LINES {
            self.0.clear();
        }
        self.0.insert(key, (now, 0));
        Some(0)
    }
}

/// A hash of the place in the source, the values and the spans of an event.
fn key<S, N>(context: &FmtContext<'_, S, N>, event: &Event<'_>) -> u64
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'w> FormatFields<'w> + 'static,
{
    let mut values = HashValues(DefaultHasher::new());
    event.metadata().callsite().hash(&mut values.0);
    event.record(&mut values);
    for span in context.event_scope().into_iter().flatten() {
        span.metadata().callsite().hash(&mut values.0);
        if let Some(fields) = span.extensions().get::<FormattedFields<N>>() {
            without_request_id(&fields.fields).hash(&mut values.0);
        }
    }
    values.0.finish()
}

/// The formatted fields of a span before and after the id of the request. Both formats write the name
/// of the field before its value, and an id contains none of the characters after it.
fn without_request_id(fields: &str) -> (&str, &str) {
    let Some((before, after)) = fields.split_once(REQUEST_ID_FIELD) else {
        return (fields, "");
    };
    let end = after.find([' ', ',', '}']).unwrap_or(after.len());
    (before, after.get(end..).unwrap_or_default())
}

/// Hashes the values of an event.
struct HashValues(DefaultHasher);

impl Visit for HashValues {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() != IGNORED_FIELD {
            field.name().hash(&mut self.0);
            format!("{value:?}").hash(&mut self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[test]
    fn admits_a_line_once_per_interval_and_counts_the_omitted_ones() {
        let mut written = Written::default();
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(written.admit(1, start), Some(0));
        assert_eq!(written.admit(2, start), Some(0));
        for seconds in [0, 1, 59] {
            assert_eq!(written.admit(1, after(seconds)), None);
        }
        assert_eq!(written.admit(1, after(60)), Some(3));
        assert_eq!(written.admit(1, after(61)), None);
        assert_eq!(written.admit(2, after(200)), Some(0));
    }

    #[test]
    fn remembers_a_bounded_number_of_lines() {
        let mut written = Written::default();
        let start = Instant::now();
        for key in 0..10_000 {
            assert_eq!(written.admit(key, start), Some(0));
        }
        assert!(written.0.len() <= MAX_LINES);
    }

    #[test]
    fn adds_the_count_in_the_format_of_the_line() {
        let text = with_count("WARN outage\n", 7, LineFormat::Text);
        assert_eq!(text, "WARN outage repeated=7\n");
        let json = with_count("{\"fields\":{\"a\":1}}\n", 7, LineFormat::Json);
        let json: serde_json::Value = serde_json::from_str(&json).expect("valid JSON");
        assert_eq!(json["repeated"], 7);
        assert_eq!(json["fields"]["a"], 1);
    }

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("lock").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_are_equal_if_they_differ_only_in_a_duration_or_a_request_id() {
        let lines = Lines::default();
        let written = lines.clone();
        let layer = tracing_subscriber::fmt::layer()
            .with_writer(move || written.clone())
            .map_event_format(|format| WithoutRepeats::new(format, LineFormat::Text));
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::with_default(subscriber, || {
            for ms in 0..5 {
                for error in ["full", "locked"] {
                    tracing::warn!(error, ms, "outage");
                }
                for route in ["/a", "/b"] {
                    let span = tracing::info_span!("request", request_id = %ms, route);
                    span.in_scope(|| tracing::error!(status = 503, ms, "request"));
                }
                for plan in ["p1", "p2"] {
                    tracing::info!(target: REQUEST_LOG, status = 409, plan, ms, "rejected");
                }
                tracing::info!("progress");
            }
        });
        let text = String::from_utf8(lines.0.lock().expect("lock").clone()).expect("text");
        let count = |word: &str| text.lines().filter(|line| line.contains(word)).count();
        assert_eq!(
            [
                count("outage"),
                count("ERROR"),
                count("rejected"),
                count("progress"),
            ],
            [2, 2, 2, 5],
            "{text}"
        );
    }
}
