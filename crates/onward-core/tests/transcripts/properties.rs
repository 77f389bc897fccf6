//! Properties for arbitrary conversations: the repair accepts every input and is idempotent, its
//! output is valid for the API, and only duplicates are lost.

use std::borrow::Cow;
use std::time::Duration;

use onward_core::Timestamp;
use onward_core::call::{CallPolicy, CallStatus, CallTimestamp, Limit};
use onward_core::transcript::{
    Api, Call, Message, Part, RepairKind, Resolution, Role, TrailingCalls, repair_document,
    sanitize,
};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use crate::conversations::lists;
use crate::validators;

/// The unique markers in a text, in order: `text 7.`, `result 3.` and so on.
fn markers(text: &str, kinds: &[&str]) -> Vec<String> {
    let mut markers = Vec::new();
    let mut words = text.split(|c: char| !c.is_alphanumeric() && c != ' ' && c != '.');
    for word in words.by_ref() {
        let Some(marker) = word.strip_suffix('.') else {
            continue;
        };
        // Inside a JSON string, a marker may follow the escape sequence `\n`.
        let marker = marker
            .strip_prefix("n")
            .filter(|rest| kinds.iter().any(|kind| rest.starts_with(kind)))
            .unwrap_or(marker);
        if let Some((kind, number)) = marker.split_once(' ')
            && kinds.contains(&kind)
            && number.parse::<u32>().is_ok()
        {
            markers.push(marker.to_owned());
        }
    }
    markers
}

fn check_repair(api: Api, rows: &[Value], pretty: bool) -> Result<(), TestCaseError> {
    let list = Value::from(rows.to_vec());
    let text = if pretty {
        format!("{list:#}")
    } else {
        list.to_string()
    };
    let repaired = repair_document(api, &text, TrailingCalls::Answer);
    prop_assert_eq!(
        repaired.repairs.is_empty(),
        matches!(repaired.text, Cow::Borrowed(_))
    );
    prop_assert_eq!(
        repaired.repairs.is_empty(),
        repaired.text == text,
        "{}",
        &repaired.text
    );
    let out: Vec<Value> = match serde_json::from_str(&repaired.text) {
        Ok(out) => out,
        Err(error) => {
            return Err(TestCaseError::fail(format!(
                "invalid JSON: {error}: {}",
                repaired.text
            )));
        }
    };
    let verdict = match api {
        Api::Anthropic => validators::anthropic(&out),
        Api::Chat => validators::chat(&out),
        Api::Responses => validators::responses(&out),
    };
    prop_assert_eq!(verdict, Ok(()), "{}", repaired.text);

    // The repair is idempotent.
    let again = repair_document(api, &repaired.text, TrailingCalls::Answer);
    prop_assert_eq!(&again.repairs, &[], "{}", repaired.text);

    // Texts, calls and other content are kept in order.
    let kinds = ["text", "input", "other"];
    prop_assert_eq!(
        markers(&repaired.text, &kinds),
        markers(&text, &kinds),
        "{}",
        repaired.text
    );
    // Only duplicate results are dropped, and none is repeated.
    let duplicates = repaired
        .repairs
        .iter()
        .filter(|repair| repair.kind == RepairKind::DuplicateResult)
        .count();
    let mut before = markers(&text, &["result"]);
    let mut after = markers(&repaired.text, &["result"]);
    prop_assert_eq!(after.len() + duplicates, before.len(), "{}", repaired.text);
    before.sort();
    after.sort();
    after.dedup();
    prop_assert!(after.iter().all(|marker| before.contains(marker)));
    prop_assert_eq!(after.len() + duplicates, before.len());
    Ok(())
}

fn any_api() -> impl Strategy<Value = Api> {
    prop_oneof![Just(Api::Anthropic), Just(Api::Chat), Just(Api::Responses)]
}

fn parts() -> impl Strategy<Value = Part<'static>> {
    let ids = prop::sample::select(vec!["a", "b"]);
    let times = (any::<bool>(), prop::option::of(0i64..400), any::<bool>());
    let call = (ids.clone(), prop::option::of(ids.clone()), times).prop_map(
        |(id, tool, (is_running, started, is_settled))| {
            let times = CallTimestamp {
                status: if is_running {
                    CallStatus::Running
                } else {
                    CallStatus::AwaitingApproval
                },
                started_at: started.map(|s| Timestamp::from_millis(s * 1000)),
                last_progress_at: None,
                limit: Limit::After(Duration::from_secs(60)),
                grace: None,
            };
            let resolution = if is_settled {
                Resolution::Settled
            } else {
                Resolution::Open(times)
            };
            Part::Call(Call {
                id: id.into(),
                tool: tool.map(Cow::from),
                input: "".into(),
                resolution,
            })
        },
    );
    prop_oneof![
        prop::sample::select(vec!["", " ", "x", "y"]).prop_map(|text| Part::Text(text.into())),
        call,
        ids.prop_map(|id| Part::Result(id.into())),
        Just(Part::Other),
    ]
}

fn messages() -> impl Strategy<Value = Vec<Message<'static>>> {
    let roles = vec![
        Role::User,
        Role::Assistant,
        Role::Assistant,
        Role::Tool,
        Role::Other,
    ];
    let message = (
        prop::sample::select(roles),
        vec(parts(), 0..3),
        any::<bool>(),
    )
        .prop_map(|(role, parts, is_queued)| Message {
            role,
            parts,
            is_queued,
            is_plain: true,
        });
    vec(message, 0..8)
}

proptest! {
    #[test]
    fn repaired_anthropic_conversations_are_valid(rows in lists(Api::Anthropic), pretty: bool) {
        check_repair(Api::Anthropic, &rows, pretty)?;
    }

    #[test]
    fn repaired_chat_conversations_are_valid(rows in lists(Api::Chat), pretty: bool) {
        check_repair(Api::Chat, &rows, pretty)?;
    }

    #[test]
    fn repaired_responses_conversations_are_valid(rows in lists(Api::Responses), pretty: bool) {
        check_repair(Api::Responses, &rows, pretty)?;
    }

    #[test]
    fn leaving_trailing_calls_open_is_idempotent(
        (api, rows) in any_api().prop_flat_map(|api| (Just(api), lists(api))),
    ) {
        let text = Value::from(rows).to_string();
        let repaired = repair_document(api, &text, TrailingCalls::Leave);
        let again = repair_document(api, &repaired.text, TrailingCalls::Leave);
        prop_assert_eq!(&again.repairs, &[], "{}", repaired.text);
    }

    #[test]
    fn arbitrary_text_causes_no_panic(api in any_api(), text in "\\PC{0,80}") {
        repair_document(api, &text, TrailingCalls::Answer);
    }

    #[test]
    fn a_damaged_document_causes_no_panic(
        (api, rows) in any_api().prop_flat_map(|api| (Just(api), lists(api))),
        cut in any::<prop::sample::Index>(),
        drop in 0usize..6,
    ) {
        let text = Value::from(rows).to_string();
        let from = cut.index(text.len().max(1)).min(text.len());
        let to = (from + drop).min(text.len());
        if text.is_char_boundary(from) && text.is_char_boundary(to) {
            let damaged = [&text[..from], &text[to..]].concat();
            repair_document(api, &damaged, TrailingCalls::Answer);
        }
    }

    #[test]
    fn sanitizing_is_idempotent_and_monotone_in_time(
        messages in messages(), now in 0i64..500, later in 0i64..500,
    ) {
        let at = |s: i64| Timestamp::from_millis(s * 1000);
        let policy = CallPolicy::default();
        let (rows, repairs) = sanitize(&messages, at(now), policy);
        for row in &rows {
            let is_repaired = repairs.iter().any(|repair| repair.row == row.index);
            prop_assert_eq!(matches!(row.message, Cow::Owned(_)), is_repaired);
        }
        let once: Vec<Message<'_>> = rows.into_iter().map(|row| row.message.into_owned()).collect();
        let (_, again) = sanitize(&once, at(now), policy);
        prop_assert_eq!(again, vec![]);
        let (_, more) = sanitize(&messages, at(now.max(now + later)), policy);
        prop_assert!(repairs.iter().all(|repair| more.contains(repair)));
    }
}
