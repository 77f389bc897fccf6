//! Identifies the session of a request.
//!
//! Agents send a session id in a header or a field of the body. Without one, a conversation is
//! identified by the digest of its beginning: the system prompt and the first user message. The
//! digest also separates parallel conversations in one session, such as those of subagents.

use axum::http::HeaderMap;
use axum::http::header::USER_AGENT;
use onward_core::transcript::Api;
use onward_core::transcript::json::Object;

use super::request::Request;
use super::turns;

/// Headers with a session id.
const SESSION_HEADERS: [&str; 6] = [
    "x-claude-code-session-id",
    "session-id",
    "session_id",
    "x-session-id",
    "conversation-id",
    "conversation_id",
];
/// The header with the id of a Claude Code subagent.
const SUBAGENT_HEADER: &str = "x-claude-code-agent-id";
/// The maximum length of a stored id; a longer one is replaced by its digest.
const MAX_NAME_CHARS: usize = 128;

/// The origin of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestSource {
    /// The session id.
    pub(super) session: String,
    /// Whether the agent sent the id. Otherwise several sessions may have it.
    pub(super) is_named: bool,
    /// The agent whose timeouts apply; empty if it is not recognized.
    pub(super) agent: &'static str,
    /// The subagent id, if the agent sends one.
    pub(super) subagent: Option<String>,
    /// The digest of the conversation's beginning, unless the server stores the conversation.
    pub(super) conversation: Option<String>,
}

/// The origin of a request, if it can be determined.
pub(super) fn identify(headers: &HeaderMap, request: &Request<'_>) -> Option<RequestSource> {
    let header = |name: &str| {
        let value = headers.get(name)?.to_str().ok()?.trim();
        (!value.is_empty()).then(|| shorten(value))
    };
    let named = SESSION_HEADERS.iter().find_map(|name| header(name));
    let named = named.or_else(|| session_field(request).map(|name| shorten(&name)));
    let stored = request.previous_response_id().is_some();
    let conversation = (!stored).then(|| turns::conversation_digest(request));
    let session = match (&named, &conversation) {
        (Some(named), _) => named.clone(),
        (None, Some(digest)) => format!("conversation-{digest}"),
        (None, None) => return None,
    };
    Some(RequestSource {
        session,
        is_named: named.is_some(),
        agent: agent(headers),
        subagent: header(SUBAGENT_HEADER),
        conversation,
    })
}

/// The agent that sent a request, by its headers.
fn agent(headers: &HeaderMap) -> &'static str {
    const PRODUCTS: [(&str, &str); 6] = [
        ("claude-cli", "claude-code"),
        ("claude-code", "claude-code"),
        ("codex", "codex"),
        ("kimi", "kimi"),
        ("opencode", "opencode"),
        ("geminicli", "gemini"),
    ];
    if headers.contains_key("x-claude-code-session-id") {
        return "claude-code";
    }
    let product = headers
        .get(USER_AGENT)
        .and_then(|value| value.to_str().ok());
    let product = product.unwrap_or_default().to_ascii_lowercase();
    let known = PRODUCTS.iter().find(|(name, _)| product.starts_with(name));
    known.map_or("", |(_, agent)| *agent)
}

/// The session id in the body.
fn session_field(request: &Request<'_>) -> Option<String> {
    let fields = &request.fields;
    let metadata = fields.get("metadata").and_then(Object::parse);
    let metadata_field = |key: &str| {
        let value = metadata.as_ref()?.string(key)?;
        Some(value.into_owned()).filter(|value| !value.is_empty())
    };
    if let Some(session) = metadata_field("session_id") {
        return Some(session);
    }
    match request.api {
        Api::Anthropic => metadata_field("user_id").and_then(|user| session_from_user_id(&user)),
        Api::Chat | Api::Responses => {
            let conversation = fields.get("conversation");
            let object = conversation.and_then(Object::parse);
            let named = match object {
                Some(conversation) => conversation.string("id"),
                None => fields.string("conversation"),
            };
            let named = named.or_else(|| fields.string("prompt_cache_key"))?;
            Some(named.into_owned()).filter(|name| !name.is_empty())
        }
    }
}

/// The session id in the `user_id` that Claude Code sends. A plain user id contains none.
fn session_from_user_id(user: &str) -> Option<String> {
    if let Some(session) = Object::parse(user).and_then(|user| {
        let session = user.string("session_id")?;
        Some(session.into_owned())
    }) {
        return Some(session);
    }
    let (_, session) = user.rsplit_once("_session_")?;
    (!session.is_empty()).then(|| session.to_owned())
}

fn shorten(name: &str) -> String {
    if name.chars().count() > MAX_NAME_CHARS {
        turns::digest(&[name])
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(api: Api, headers: &[(&'static str, &'static str)], body: &str) -> String {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().expect("valid header value"));
        }
        let request = Request::parse(api, body).expect("valid request");
        identify(&map, &request)
            .expect("session identified")
            .session
    }

    #[test]
    fn identifies_a_session_by_a_header_or_a_field() {
        let messages = r#""messages":[{"role":"user","content":"a"}]"#;
        for (headers, fields, named) in [
            (&[("x-claude-code-session-id", "h")][..], "", "h"),
            (&[("session_id", "h")], "", "h"),
            (
                &[],
                r#","metadata":{"user_id":"user_1_account_2_session_f"}"#,
                "f",
            ),
            (
                &[],
                r#","metadata":{"user_id":"{\"device_id\":\"d\",\"session_id\":\"f\"}"}"#,
                "f",
            ),
            (
                &[("x-session-id", "h")],
                r#","metadata":{"session_id":"f"}"#,
                "h",
            ),
        ] {
            let body = format!("{{{messages}{fields}}}");
            assert_eq!(session(Api::Anthropic, headers, &body), named, "{body}");
        }
        let body = format!(r#"{{{messages},"prompt_cache_key":"f"}}"#);
        assert_eq!(session(Api::Chat, &[], &body), "f");
        for conversation in [r#""f""#, r#"{"id":"f"}"#] {
            let body = format!(r#"{{"input":"a","conversation":{conversation}}}"#);
            assert_eq!(session(Api::Responses, &[], &body), "f");
        }
    }

    #[test]
    fn identifies_a_conversation_by_its_beginning_without_a_session_id() {
        let body = |system: &str, first: &str, more: &str| {
            format!(
                r#"{{"system":"{system}","metadata":{{"user_id":"me"}},"messages":[{{"role":"user","content":"{first}"}}{more}]}}"#
            )
        };
        let more = r#",{"role":"assistant","content":"x"},{"role":"user","content":"y"}"#;
        let session_of = |body: String| session(Api::Anthropic, &[], &body);
        assert_eq!(
            session_of(body("s", "a", "")),
            session_of(body("s", "a", more))
        );
        assert_ne!(
            session_of(body("s", "a", "")),
            session_of(body("s", "b", ""))
        );
        assert_ne!(
            session_of(body("s", "a", "")),
            session_of(body("t", "a", ""))
        );
        assert!(session_of(body("s", "a", "")).starts_with("conversation-"));
    }

    #[test]
    fn shortens_a_long_id_to_a_unique_digest() {
        let long = "x".repeat(5_000);
        assert!(shorten(&long).len() < MAX_NAME_CHARS);
        assert_ne!(shorten(&long), shorten(&format!("{long}y")));
        assert_eq!(shorten("s"), "s");
    }
}
