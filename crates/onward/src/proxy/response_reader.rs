//! Reads model responses while they are relayed: event streams and JSON bodies.
//!
//! Each chunk is read after it has been relayed, so reading adds no latency. A response that cannot
//! be read (truncated, in another format) counts as unknown. A compressed one is decoded at its end. The reader collects the
//! tool calls of a response; a response without calls ends the turn.

use onward_core::transcript::Api;
use serde_json::Value;

use super::codec::{EventContent, ModelResponse, codec};
use super::content_coding::ContentCoding;

/// The maximum length of a JSON body or of one event; longer ones are not read.
const MAX_BUFFERED_BYTES: usize = 16 << 20;

/// The maximum length of the text of an event stream that is kept.
const MAX_TEXT_BYTES: usize = 1 << 18;

/// A server-sent event, with its raw bytes.
pub(super) struct SseEvent {
    pub(super) raw: Vec<u8>,
    data: String,
}

impl SseEvent {
    /// Adds the event to `response`.
    pub(super) fn apply(&self, api: Api, response: &mut ModelResponse) -> EventContent {
        match serde_json::from_str::<Value>(&self.data) {
            Ok(event) => codec(api).read_event(response, &event),
            Err(_) => EventContent::Other,
        }
    }
}

/// Splits a byte stream into events.
#[derive(Default)]
pub(super) struct SseParser {
    buffer: Vec<u8>,
    /// The end of the range that was searched for an event boundary.
    searched: usize,
}

impl SseParser {
    /// Adds received bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete event.
    pub(super) fn next_event(&mut self) -> Option<SseEvent> {
        let from = self.searched;
        let end = self
            .buffer
            .get(from..)?
            .windows(2)
            .enumerate()
            .find_map(|(at, two)| {
                let at = from + at;
                match two {
                    b"\n\n" => Some(at + 2),
                    // A blank line with CRLF.
                    b"\n\r" if self.buffer.get(at + 2) == Some(&b'\n') => Some(at + 3),
                    _ => None,
                }
            });
        let Some(end) = end else {
            self.searched = self.buffer.len().saturating_sub(2);
            return None;
        };
        self.searched = 0;
        let rest = self.buffer.split_off(end);
        let raw = std::mem::replace(&mut self.buffer, rest);
        let text = String::from_utf8_lossy(&raw);
        let data: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .map(|data| data.strip_prefix(' ').unwrap_or(data))
            .collect();
        let data = data.join("\n");
        Some(SseEvent { raw, data })
    }

    /// The bytes after the last complete event.
    pub(super) fn into_rest(self) -> Vec<u8> {
        self.buffer
    }

    fn is_too_long(&self) -> bool {
        self.buffer.len() > MAX_BUFFERED_BYTES
    }
}

/// The kind of a response body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyKind {
    EventStream,
    Json,
}

/// Reads a relayed response.
pub(super) struct ResponseReader {
    api: Api,
    response: ModelResponse,
    buffer: Buffer,
}

enum Buffer {
    Events(SseParser),
    Body(Vec<u8>),
    /// A compressed body, which is decoded after its last byte.
    Compressed(Vec<u8>, ContentCoding, BodyKind),
    /// The response is too long to be read.
    Discarded,
}

impl ResponseReader {
    pub(super) fn new(api: Api, kind: BodyKind, coding: ContentCoding) -> Self {
        Self {
            api,
            response: ModelResponse::placeholder(),
            buffer: match (coding, kind) {
                (ContentCoding::Identity, BodyKind::EventStream) => {
                    Buffer::Events(SseParser::default())
                }
                (ContentCoding::Identity, BodyKind::Json) => Buffer::Body(Vec::new()),
                (coding, kind) => Buffer::Compressed(Vec::new(), coding, kind),
            },
        }
    }

    /// Adds bytes that have been relayed.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let too_long = match &mut self.buffer {
            Buffer::Events(events) => {
                events.push(bytes);
                while let Some(event) = events.next_event() {
                    let content = event.apply(self.api, &mut self.response);
                    if let EventContent::Text(text) = content
                        && self.response.text.len() + text.len() <= MAX_TEXT_BYTES
                    {
                        self.response.text.push_str(&text);
                    }
                }
                events.is_too_long()
            }
            Buffer::Body(body) | Buffer::Compressed(body, ..) => {
                body.extend_from_slice(bytes);
                body.len() > MAX_BUFFERED_BYTES
            }
            Buffer::Discarded => false,
        };
        if too_long {
            self.buffer = Buffer::Discarded;
        }
    }

    /// The response, after its last byte.
    pub(super) fn finish(mut self) -> ModelResponse {
        match self.buffer {
            Buffer::Events(_) => self.response,
            Buffer::Body(body) => {
                if let Ok(body) = serde_json::from_slice(&body) {
                    codec(self.api).read_body(&mut self.response, &body);
                }
                self.response
            }
            Buffer::Compressed(body, coding, kind) => {
                match coding.decode(&body, MAX_BUFFERED_BYTES) {
                    Some(body) => {
                        let mut reader = Self::new(self.api, kind, ContentCoding::Identity);
                        reader.push(&body);
                        reader.finish()
                    }
                    None => ModelResponse::placeholder(),
                }
            }
            Buffer::Discarded => ModelResponse::placeholder(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(pieces: &[&str]) -> Vec<(String, String)> {
        let mut events = SseParser::default();
        let mut found = Vec::new();
        for piece in pieces {
            events.push(piece.as_bytes());
            while let Some(event) = events.next_event() {
                found.push((String::from_utf8_lossy(&event.raw).into_owned(), event.data));
            }
        }
        found
    }

    #[test]
    fn splits_events_at_blank_lines() {
        for (pieces, data) in [
            (&["data: 1\n\ndata: 2\n\n"][..], &["1", "2"][..]),
            (&["da", "ta: 1\n", "\nda", "ta: 2\n\n"], &["1", "2"]),
            (&["data: 1\r\n\r", "\ndata: 2\r\n\r\n"], &["1", "2"]),
            (&["event: a\ndata:1\ndata: 2\n\n"], &["1\n2"]),
            (&[": ping\n\n"], &[""]),
            (&["data: 1\n"], &[]),
        ] {
            let found = events(pieces);
            let read: Vec<&str> = found.iter().map(|(_, data)| data.as_str()).collect();
            assert_eq!(read, data, "{pieces:?}");
            let raw: String = found.iter().map(|(raw, _)| raw.as_str()).collect();
            assert!(pieces.concat().starts_with(&raw), "{pieces:?}");
        }
    }

    fn usage(api: Api, kind: BodyKind, text: &str) -> Option<[u64; 4]> {
        let mut reader = ResponseReader::new(api, kind, ContentCoding::Identity);
        reader.push(text.as_bytes());
        let usage = reader.finish().usage?;
        let (created, read) = (usage.cache_creation, usage.cache_read);
        Some([usage.input, created, read, usage.output])
    }

    #[test]
    fn reads_the_tokens_of_every_api() {
        use BodyKind::{EventStream, Json};
        let counts = Some([4, 0, 6, 5]);
        for (api, kind, text, expected) in [
            (
                Api::Anthropic,
                EventStream,
                "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":3,\
                 \"cache_creation_input_tokens\":7,\"cache_read_input_tokens\":9,\"output_tokens\":1}}}\n\n\
                 data: {\"type\":\"message_delta\",\"delta\":{},\"usage\":{\"output_tokens\":8}}\n\n",
                Some([3, 7, 9, 8]),
            ),
            (
                Api::Anthropic,
                Json,
                "{\"type\":\"message\",\"content\":[],\"usage\":{\"input_tokens\":3,\"output_tokens\":8}}",
                Some([3, 0, 0, 8]),
            ),
            (
                Api::Chat,
                EventStream,
                "data: {\"choices\":[{\"delta\":{}}],\"usage\":null}\n\n\
                 data: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5,\
                 \"prompt_tokens_details\":{\"cached_tokens\":6}}}\n\ndata: [DONE]\n\n",
                counts,
            ),
            (
                Api::Chat,
                Json,
                "{\"choices\":[{\"message\":{}}],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5,\
                 \"prompt_tokens_details\":{\"cached_tokens\":6}}}",
                counts,
            ),
            (
                Api::Responses,
                EventStream,
                "data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":10,\
                 \"input_tokens_details\":{\"cached_tokens\":6},\"output_tokens\":5}}}\n\n",
                counts,
            ),
            (
                Api::Responses,
                Json,
                "{\"output\":[],\"usage\":{\"input_tokens\":10,\"input_tokens_details\":\
                 {\"cached_tokens\":6},\"output_tokens\":5}}",
                counts,
            ),
            // No count is not zero.
            (Api::Chat, Json, "{\"choices\":[{\"message\":{}}]}", None),
            (
                Api::Anthropic,
                Json,
                "{\"type\":\"message\",\"content\":[]}",
                None,
            ),
        ] {
            assert_eq!(usage(api, kind, text), expected, "{api:?} {kind:?}");
        }
    }

    #[test]
    fn discards_a_response_that_is_too_long() {
        for kind in [BodyKind::Json, BodyKind::EventStream] {
            let mut reader = ResponseReader::new(Api::Chat, kind, ContentCoding::Identity);
            let piece = vec![b'a'; 1 << 20];
            for _ in 0..20 {
                reader.push(&piece);
            }
            assert!(matches!(reader.buffer, Buffer::Discarded));
            assert_eq!(reader.finish(), ModelResponse::placeholder());
        }
    }
}
