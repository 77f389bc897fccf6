//! Which session a request is of.
//!
//! Agents name it in a header, or in a field that the API has for such things; where none is named, a
//! conversation is known by what it began with: the system's words and the first of a person. The same
//! digest keeps apart what one agent asks side by side under one name, as subagents do.

use axum::http::HeaderMap;
use onward_core::transcript::Api;
use onward_core::transcript::json::Object;

use super::request::{Request, digest};

/// Headers in which agents name their session.
const HEADERS: [&str; 6] = [
    "x-claude-code-session-id",
    "session-id",
    "session_id",
    "x-session-id",
    "conversation-id",
    "conversation_id",
];
/// The header in which Claude Code names a subagent.
const AGENT: &str = "x-claude-code-agent-id";
/// A longer name is not kept, but its digest.
const LONGEST: usize = 128;

/// Whose request it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Who {
    /// The session.
    pub(super) session: String,
    /// The subagent, where the agent names it.
    pub(super) subagent: Option<String>,
    /// What the conversation began with, as a digest; nothing where the server remembers it.
    pub(super) head: Option<String>,
}

/// Whose request it is; none where that cannot be known.
pub(super) fn who(headers: &HeaderMap, request: &Request<'_>) -> Option<Who> {
    let header = |name: &str| {
        let value = headers.get(name)?.to_str().ok()?.trim();
        (!value.is_empty()).then(|| short(value))
    };
    let named = HEADERS.iter().find_map(|name| header(name));
    let named = named.or_else(|| field(request).map(|name| short(&name)));
    let remembered = request.previous().is_some();
    let head = (!remembered).then(|| request.head());
    let session = match (&named, &head) {
        (Some(named), _) => named.clone(),
        (None, Some(head)) => format!("conversation-{head}"),
        (None, None) => return None,
    };
    Some(Who {
        session,
        subagent: header(AGENT),
        head,
    })
}

/// The session as the body names it.
fn field(request: &Request<'_>) -> Option<String> {
    let fields = &request.fields;
    let metadata = fields.get("metadata").and_then(Object::of);
    let of_metadata = |key: &str| {
        let value = metadata.as_ref()?.string(key)?;
        Some(value.into_owned()).filter(|value| !value.is_empty())
    };
    if let Some(session) = of_metadata("session_id") {
        return Some(session);
    }
    match request.api {
        Api::Anthropic => of_metadata("user_id").and_then(|user| of_user(&user)),
        Api::Chat | Api::Responses => {
            let conversation = fields.get("conversation");
            let object = conversation.and_then(Object::of);
            let named = match object {
                Some(conversation) => conversation.string("id"),
                None => fields.string("conversation"),
            };
            let named = named.or_else(|| fields.string("prompt_cache_key"))?;
            Some(named.into_owned()).filter(|name| !name.is_empty())
        }
    }
}

/// The session in what Claude Code says about its user; a mere user is no session.
fn of_user(user: &str) -> Option<String> {
    if let Some(session) = Object::of(user).and_then(|user| {
        let session = user.string("session_id")?;
        Some(session.into_owned())
    }) {
        return Some(session);
    }
    let (_, session) = user.rsplit_once("_session_")?;
    (!session.is_empty()).then(|| session.to_owned())
}

fn short(name: &str) -> String {
    match name.chars().count() > LONGEST {
        true => digest(&[name]),
        false => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(api: Api, headers: &[(&'static str, &'static str)], body: &str) -> String {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().expect("a value"));
        }
        let request = Request::read(api, body).expect("a request");
        who(&map, &request).expect("a session").session
    }

    #[test]
    fn a_session_is_named_by_a_header_or_by_a_field() {
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
    fn without_a_name_a_conversation_is_known_by_its_beginning() {
        let body = |system: &str, first: &str, more: &str| {
            format!(
                r#"{{"system":"{system}","metadata":{{"user_id":"me"}},"messages":[{{"role":"user","content":"{first}"}}{more}]}}"#
            )
        };
        let more = r#",{"role":"assistant","content":"x"},{"role":"user","content":"y"}"#;
        let of = |body: String| session(Api::Anthropic, &[], &body);
        assert_eq!(of(body("s", "a", "")), of(body("s", "a", more)));
        assert_ne!(of(body("s", "a", "")), of(body("s", "b", "")));
        assert_ne!(of(body("s", "a", "")), of(body("t", "a", "")));
        assert!(of(body("s", "a", "")).starts_with("conversation-"));
    }

    #[test]
    fn a_name_that_is_very_long_is_shortened_and_stays_its_own() {
        let long = "x".repeat(5_000);
        assert!(short(&long).len() < LONGEST);
        assert_ne!(short(&long), short(&format!("{long}y")));
        assert_eq!(short("s"), "s");
    }
}
