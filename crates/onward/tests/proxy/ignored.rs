//! Servers that call tools although they may not.

use serde_json::Value;

use crate::house::{House, Proxy};
use crate::speech::{ALL, Api, IDLE, Talk};
use crate::upstream::{Reply, Upstream};

async fn stuck(proxy: &Proxy, upstream: &Upstream, api: Api, streams: bool, name: &str) -> Talk {
    let mut talk = Talk::new(api, streams, &format!("{api:?}-{streams}-{name}"));
    talk.idles(proxy, upstream, 8).await;
    talk
}

/// A request has no tools and no traces of them, and says what was done in words.
#[track_caller]
fn has_no_tools(talk: &Talk, request: &Value) {
    for key in ["tools", "tool_choice", "parallel_tool_calls"] {
        assert!(request.get(key).is_none(), "{key}: {request}");
    }
    let text = request.to_string();
    for word in [
        "tool_use",
        "tool_result",
        "tool_calls",
        "function_call",
        "\"role\":\"tool\"",
    ] {
        assert!(!text.contains(word), "{word}: {request}");
    }
    assert!(text.contains("Called `Bash` with"), "{request}");
    assert!(text.contains("When is high tide?") && text.contains("You are an agent."));
    assert_eq!(request["stream"], talk.streams);
    let rows = match talk.api {
        Api::Anthropic | Api::Chat => &request["messages"],
        Api::Responses => &request["input"],
    };
    let last = rows.as_array().unwrap().last().unwrap();
    assert_eq!(last["role"], "user");
    assert!(last.to_string().contains(IDLE), "{last}");
}

#[tokio::test]
async fn one_that_calls_all_the_same_is_asked_once_more_with_no_tools_at_all() {
    let upstream = Upstream::start().await;
    let proxy = House::new("ignored").proxy(&upstream);
    for api in ALL {
        for streams in [false, true] {
            let talk = stuck(&proxy, &upstream, api, streams, "once").await;
            upstream.will(talk.calling());
            upstream.will(talk.answers("High tide is at noon."));
            let before = upstream.count();
            let answer = talk.sends(&proxy).await;
            assert_eq!(talk.words(&answer), "High tide is at noon.", "{api:?}");
            assert_eq!(upstream.count(), before + 2);
            let seen = upstream.seen();
            assert!(talk.forbids(&seen[before].json()));
            has_no_tools(&talk, &seen[before + 1].json());
            assert_eq!(seen[before].path, seen[before + 1].path);
            assert_eq!(seen[before].headers["x-session-id"], talk.session.as_str());
            assert_eq!(
                seen[before + 1].headers["x-session-id"],
                talk.session.as_str()
            );
        }
    }
}

#[tokio::test]
async fn one_that_calls_even_then_has_its_turn_ended_with_a_plain_sentence() {
    let upstream = Upstream::start().await;
    let proxy = House::new("twice").proxy(&upstream);
    for api in ALL {
        for streams in [false, true] {
            let mut talk = stuck(&proxy, &upstream, api, streams, "twice").await;
            upstream.will(talk.calling());
            upstream.will(talk.calling());
            let before = upstream.count();
            let answer = talk.sends(&proxy).await;
            let words = talk.words(&answer);
            assert_eq!(
                words,
                "I am stopping here: in the last 8 steps nothing new was learned, and no answer \
                 came without another tool call."
            );
            assert_eq!(upstream.count(), before + 2);
            // The next message is answered as ever.
            talk.says(&words);
            talk.asks("Go on.");
            upstream.will(talk.calling());
            talk.sends(&proxy).await;
            assert_eq!(upstream.last().body, talk.request().to_string().as_bytes());
        }
    }
}

#[tokio::test]
async fn words_before_a_call_stay_and_the_second_answer_comes_after_them() {
    let upstream = Upstream::start().await;
    let proxy = House::new("words").proxy(&upstream);
    for api in ALL {
        let talk = stuck(&proxy, &upstream, api, true, "words").await;
        upstream.will(talk.answering(Some("Let me look. "), true));
        upstream.will(talk.answers("It is at noon."));
        let answer = talk.sends(&proxy).await;
        assert_eq!(
            talk.words(&answer),
            "Let me look. It is at noon.",
            "{api:?}"
        );

        // As a whole, the first answer is not given at all.
        let talk = stuck(&proxy, &upstream, api, false, "words").await;
        upstream.will(talk.answering(Some("Let me look. "), true));
        upstream.will(talk.answers("It is at noon."));
        let answer = talk.sends(&proxy).await;
        assert_eq!(talk.words(&answer), "It is at noon.", "{api:?}");
    }
}

#[tokio::test]
async fn words_before_a_second_call_stay_and_the_sentence_comes_after_them() {
    let upstream = Upstream::start().await;
    let proxy = House::new("words-twice").proxy(&upstream);
    for api in ALL {
        let talk = stuck(&proxy, &upstream, api, true, "both").await;
        upstream.will(talk.calling());
        upstream.will(talk.answering(Some("Hm."), true));
        let answer = talk.sends(&proxy).await;
        let words = talk.words(&answer);
        assert!(
            words.starts_with("Hm.\n\nI am stopping here: "),
            "{api:?}: {words}"
        );
    }
}

#[tokio::test]
async fn one_that_cannot_be_asked_again_has_its_turn_ended_too() {
    let upstream = Upstream::start().await;
    let proxy = House::new("unasked").proxy(&upstream);
    for (number, second) in [
        Reply::of("application/json", "{\"error\":{}}").with_status(500),
        Reply::of("application/json", "no json"),
        Reply::of("text/html", "<p>"),
    ]
    .into_iter()
    .enumerate()
    {
        for streams in [false, true] {
            let name = format!("{number}");
            let talk = stuck(&proxy, &upstream, Api::Anthropic, streams, &name).await;
            upstream.will(talk.calling());
            let kind = second.headers[0].1.clone();
            let second = Reply::of(&kind, second.bytes()).with_status(second.status);
            upstream.will(second);
            let answer = talk.sends(&proxy).await;
            assert!(talk.words(&answer).starts_with("I am stopping here: "));
        }
    }
}

#[tokio::test]
async fn one_that_does_not_take_what_was_changed_is_asked_as_the_agent_asked() {
    let upstream = Upstream::start().await;
    let proxy = House::new("refused").proxy(&upstream);
    for api in ALL {
        let talk = stuck(&proxy, &upstream, api, false, "refused").await;
        let error = Reply::of("application/json", "{\"error\":\"tool_choice\"}").with_status(400);
        upstream.will(error);
        upstream.will(talk.calling());
        let before = upstream.count();
        let answer = talk.sends(&proxy).await;
        assert!(answer.status.is_success());
        let seen = upstream.seen();
        assert!(talk.forbids(&seen[before].json()));
        assert_eq!(seen[before + 1].body, talk.request().to_string().as_bytes());
        assert_eq!(seen.len(), before + 2);
    }
    assert!(proxy.house().told().contains("it is sent as it came"));
}

#[tokio::test]
async fn an_error_of_the_api_ends_nothing() {
    let upstream = Upstream::start().await;
    let proxy = House::new("overloaded").proxy(&upstream);
    let talk = stuck(&proxy, &upstream, Api::Anthropic, true, "529").await;
    let error = "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}";
    upstream.will(Reply::of("application/json", error).with_status(529));
    let answer = talk.sends(&proxy).await;
    assert_eq!(
        (answer.status.as_u16(), answer.body.as_slice()),
        (529, error.as_bytes())
    );
    upstream.will(talk.answers("Noon."));
    let answer = talk.sends(&proxy).await;
    assert!(
        talk.forbids(&upstream.last().json()),
        "it has still to be answered in text"
    );
    assert_eq!(talk.words(&answer), "Noon.");
}
