//! Entry points of the fuzz targets (`crate::fuzz`): everything that the proxy reads from agents and
//! from the upstream server. Both return the size of what was read or written.

use axum::http::HeaderMap;
use onward_core::transcript::{Api, TrailingCalls, repair_document};

use super::codec::codec;
use super::content_coding::ContentCoding;
use super::request::{Request, apply_edits};
use super::response_reader::{BodyKind, ResponseReader};
use super::{session, turns};

/// Reads a response as an event stream and as a JSON body, whole and in small pieces.
pub(crate) fn read_response(api: Api, body: &[u8]) -> usize {
    let mut size = 0;
    for kind in [BodyKind::EventStream, BodyKind::Json] {
        for piece in [body.len().max(1), 7] {
            let mut reader = ResponseReader::new(api, kind, ContentCoding::Identity);
            for piece in body.chunks(piece) {
                reader.push(piece);
            }
            let mut response = reader.finish();
            size += response.calls.len() + response.text.len();
            let codec = codec(api);
            size += codec.begin_text(&mut response).len();
            size += codec.text_delta(&mut response, "words").len();
            size += codec.end_text(&mut response, "words").len();
        }
    }
    size
}

/// Repairs, reads and edits a request.
pub(crate) fn read_request(api: Api, text: &str) -> usize {
    let repaired = repair_document(api, text, TrailingCalls::Answer);
    let Some(request) = Request::parse(api, &repaired.text) else {
        return repaired.text.len();
    };
    let codec = codec(api);
    let mut size = apply_edits(request.text, codec.inject(&request, "words")).len();
    size += apply_edits(request.text, codec.forbid_tools(&request)).len();
    if let Ok(value) = serde_json::from_str(request.text) {
        size += codec.without_tools(value, "words").to_string().len();
    }
    let delta = turns::delta(&request, None);
    size += turns::delta(&request, delta.anchor.as_ref()).steps.len();
    let source = session::identify(&HeaderMap::new(), &request);
    size + source.map_or(0, |source| source.session.len())
}
