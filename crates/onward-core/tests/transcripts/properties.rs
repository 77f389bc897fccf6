//! What holds for every conversation: the repair is total, the second time there is nothing to do, what
//! comes out is what the API accepts, and nothing is lost but what was doubled.

use std::borrow::Cow;
use std::time::Duration;

use onward_core::Timestamp;
use onward_core::call::{CallPolicy, CallStatus, CallTimestamp, Limit};
use onward_core::transcript::{
    Api, Call, Frontier, Message, Part, Role, Standing, What, repair_document, sanitize,
};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use crate::checker;
use crate::histories::lists;

/// Every text that is unlike all others, in its order: `text 7.`, `result 3.` and so on.
fn marks(text: &str, kinds: &[&str]) -> Vec<String> {
    let mut marks = Vec::new();
    let mut words = text.split(|c: char| !c.is_alphanumeric() && c != ' ' && c != '.');
    for word in words.by_ref() {
        let Some(mark) = word.strip_suffix('.') else {
            continue;
        };
        // A new line is written as `\n` in a text.
        let mark = mark
            .strip_prefix("n")
            .filter(|rest| kinds.iter().any(|kind| rest.starts_with(kind)))
            .unwrap_or(mark);
        if let Some((kind, number)) = mark.split_once(' ')
            && kinds.contains(&kind)
            && number.parse::<u32>().is_ok()
        {
            marks.push(mark.to_owned());
        }
    }
    marks
}

fn holds(api: Api, rows: &[Value], pretty: bool) -> Result<(), TestCaseError> {
    let list = Value::from(rows.to_vec());
    let text = if pretty {
        format!("{list:#}")
    } else {
        list.to_string()
    };
    let repaired = repair_document(api, &text, Frontier::Answer);
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
        Err(why) => {
            return Err(TestCaseError::fail(format!(
                "no JSON: {why}: {}",
                repaired.text
            )));
        }
    };
    let verdict = match api {
        Api::Anthropic => checker::anthropic(&out),
        Api::Chat => checker::chat(&out),
        Api::Responses => checker::responses(&out),
    };
    prop_assert_eq!(verdict, Ok(()), "{}", repaired.text);

    // Once more, and there is nothing to do.
    let again = repair_document(api, &repaired.text, Frontier::Answer);
    prop_assert_eq!(&again.repairs, &[], "{}", repaired.text);

    // Words, calls and things stay, in their order.
    let kinds = ["text", "input", "thing"];
    prop_assert_eq!(
        marks(&repaired.text, &kinds),
        marks(&text, &kinds),
        "{}",
        repaired.text
    );
    // Of the results only the doubled ones go, and none comes twice.
    let doubled = repaired
        .repairs
        .iter()
        .filter(|repair| repair.what == What::Doubled)
        .count();
    let mut before = marks(&text, &["result"]);
    let mut after = marks(&repaired.text, &["result"]);
    prop_assert_eq!(after.len() + doubled, before.len(), "{}", repaired.text);
    before.sort();
    after.sort();
    after.dedup();
    prop_assert!(after.iter().all(|mark| before.contains(mark)));
    prop_assert_eq!(after.len() + doubled, before.len());
    Ok(())
}

fn any_api() -> impl Strategy<Value = Api> {
    prop_oneof![Just(Api::Anthropic), Just(Api::Chat), Just(Api::Responses)]
}

fn parts() -> impl Strategy<Value = Part<'static>> {
    let ids = prop::sample::select(vec!["a", "b"]);
    let times = (any::<bool>(), prop::option::of(0i64..400), any::<bool>());
    let call = (ids.clone(), prop::option::of(ids.clone()), times).prop_map(
        |(id, tool, (runs, started, settled))| {
            let times = CallTimestamp {
                status: if runs {
                    CallStatus::Running
                } else {
                    CallStatus::AwaitingApproval
                },
                started_at: started.map(|s| Timestamp::from_millis(s * 1000)),
                last_progress_at: None,
                limit: Limit::After(Duration::from_secs(60)),
            };
            let standing = if settled {
                Standing::Settled
            } else {
                Standing::Open(times)
            };
            Part::Call(Call {
                id: id.into(),
                tool: tool.map(Cow::from),
                input: "".into(),
                standing,
            })
        },
    );
    prop_oneof![
        prop::sample::select(vec!["", " ", "x", "y"]).prop_map(|text| Part::Text(text.into())),
        call,
        ids.prop_map(|id| Part::Answer(id.into())),
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
    fn anthropic_accepts_what_comes_out(rows in lists(Api::Anthropic), pretty: bool) {
        holds(Api::Anthropic, &rows, pretty)?;
    }

    #[test]
    fn chat_accepts_what_comes_out(rows in lists(Api::Chat), pretty: bool) {
        holds(Api::Chat, &rows, pretty)?;
    }

    #[test]
    fn responses_accepts_what_comes_out(rows in lists(Api::Responses), pretty: bool) {
        holds(Api::Responses, &rows, pretty)?;
    }

    #[test]
    fn whoever_may_still_answer_is_left_to_and_a_second_run_finds_nothing(
        (api, rows) in any_api().prop_flat_map(|api| (Just(api), lists(api))),
    ) {
        let text = Value::from(rows).to_string();
        let repaired = repair_document(api, &text, Frontier::Leave);
        let again = repair_document(api, &repaired.text, Frontier::Leave);
        prop_assert_eq!(&again.repairs, &[], "{}", repaired.text);
    }

    #[test]
    fn no_text_is_too_strange(api in any_api(), text in "\\PC{0,80}") {
        repair_document(api, &text, Frontier::Answer);
    }

    #[test]
    fn a_conversation_with_a_hole_in_it_is_survived(
        (api, rows) in any_api().prop_flat_map(|api| (Just(api), lists(api))),
        cut in any::<prop::sample::Index>(),
        drop in 0usize..6,
    ) {
        let text = Value::from(rows).to_string();
        let from = cut.index(text.len().max(1)).min(text.len());
        let to = (from + drop).min(text.len());
        if text.is_char_boundary(from) && text.is_char_boundary(to) {
            let torn = [&text[..from], &text[to..]].concat();
            repair_document(api, &torn, Frontier::Answer);
        }
    }

    #[test]
    fn sanitizing_is_done_at_once_and_later_finds_more_but_never_less(
        messages in messages(), now in 0i64..500, later in 0i64..500,
    ) {
        let at = |s: i64| Timestamp::from_millis(s * 1000);
        let policy = CallPolicy::default();
        let (rows, repairs) = sanitize(&messages, at(now), policy);
        for row in &rows {
            let touched = repairs.iter().any(|repair| repair.row == row.index);
            prop_assert_eq!(matches!(row.message, Cow::Owned(_)), touched);
        }
        let once: Vec<Message<'_>> = rows.into_iter().map(|row| row.message.into_owned()).collect();
        let (_, again) = sanitize(&once, at(now), policy);
        prop_assert_eq!(again, vec![]);
        let (_, more) = sanitize(&messages, at(now.max(now + later)), policy);
        prop_assert!(repairs.iter().all(|repair| more.contains(repair)));
    }
}
