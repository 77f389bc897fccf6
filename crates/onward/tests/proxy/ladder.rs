//! A turn that goes round in circles: what the model is told, and when it loses its tools.

use serde_json::json;

use crate::house::House;
use crate::speech::{ALL, Api, IDLE, Talk};
use crate::upstream::Upstream;

#[tokio::test]
async fn a_turn_that_goes_round_in_circles_is_nudged_and_then_answered_in_text() {
    let upstream = Upstream::start().await;
    let proxy = House::new("ladder").proxy(&upstream);
    for api in ALL {
        for streams in [false, true] {
            let mut talk = Talk::new(api, streams, &format!("{api:?}-{streams}"));
            for idle in 0..8 {
                upstream.will(talk.calling());
                let answer = talk.sends(&proxy).await;
                assert!(answer.status.is_success());
                let seen = upstream.last();
                if idle == 4 {
                    let said = talk.said_last(&seen.json());
                    assert_eq!(said, "In the last 4 steps nothing new was learned.");
                    assert_eq!(seen.json()["tools"], talk.request()["tools"]);
                    assert!(!talk.forbids(&seen.json()), "{api:?}");
                } else {
                    assert_eq!(seen.body, talk.request().to_string().as_bytes(), "{idle}");
                }
                talk.steps("true", "");
            }
            let reply = talk.answers("High tide is at noon.");
            let expected = reply.bytes();
            upstream.will(reply);
            let before = upstream.count();
            let answer = talk.sends(&proxy).await;
            let seen = upstream.last().json();
            assert!(talk.forbids(&seen), "{api:?}: {seen}");
            let said = talk.said_last(&seen);
            assert!(
                said.contains(IDLE) && said.contains("an answer in text"),
                "{said}"
            );
            assert!(said.contains("In the last 8 steps"), "{said}");
            // An answer in text passes as it is, and nobody is asked twice.
            assert_eq!(answer.body, expected);
            assert_eq!(talk.words(&answer), "High tide is at noon.");
            assert_eq!(upstream.count(), before + 1);
        }
    }
}

#[tokio::test]
async fn everything_but_the_reminder_and_the_choice_keeps_its_bytes() {
    let upstream = Upstream::start().await;
    let proxy = House::new("kept").proxy(&upstream);
    for api in ALL {
        let mut talk = Talk::new(api, false, &format!("{api:?}"));
        talk.idles(&proxy, &upstream, 8).await;
        upstream.will(talk.answers("So."));
        talk.sends(&proxy).await;
        let seen = upstream.last();
        let text = std::str::from_utf8(&seen.body).expect("text");
        // Taken out again, what was added leaves what was sent.
        let said = json!(talk.said_last(&seen.json())).to_string();
        let (row, choice) = match api {
            Api::Anthropic => (
                format!(r#",{{"type":"text","text":{said}}}"#),
                (r#","tool_choice":{"type":"none"}"#, ""),
            ),
            Api::Chat => (
                format!(r#",{{"role":"user","content":{said}}}"#),
                (r#""tool_choice":"none""#, r#""tool_choice":"auto""#),
            ),
            Api::Responses => (
                format!(
                    r#",{{"type":"message","role":"user","content":[{{"type":"input_text","text":{said}}}]}}"#
                ),
                (r#""tool_choice":"none""#, r#""tool_choice":"auto""#),
            ),
        };
        assert!(text.contains(&row) && text.contains(choice.0), "{text}");
        let without = text.replace(&row, "").replace(choice.0, choice.1);
        assert_eq!(without, talk.request().to_string());
    }
}

#[tokio::test]
async fn a_request_that_is_sent_again_gets_the_same_bytes() {
    let upstream = Upstream::start().await;
    let proxy = House::new("again").proxy(&upstream);
    let mut talk = Talk::new(Api::Anthropic, false, "s");
    for steps in [4, 4] {
        talk.idles(&proxy, &upstream, steps).await;
        let mut bodies = Vec::new();
        for _ in 0..3 {
            upstream.will(crate::upstream::Reply::of("application/json", "{}").with_status(529));
            talk.sends(&proxy).await;
            bodies.push(upstream.last().body);
        }
        assert_ne!(bodies[0], talk.request().to_string().as_bytes());
        assert!(bodies.iter().all(|body| *body == bodies[0]));
    }
}

#[tokio::test]
async fn after_an_answer_in_text_everything_is_normal() {
    let upstream = Upstream::start().await;
    let proxy = House::new("after").proxy(&upstream);
    for api in ALL {
        let mut talk = Talk::new(api, true, &format!("{api:?}"));
        talk.idles(&proxy, &upstream, 8).await;
        upstream.will(talk.answers("I do not know."));
        talk.sends(&proxy).await;
        talk.says("I do not know.");
        talk.asks("Look at the table, then.");
        for _ in 0..4 {
            upstream.will(talk.calling());
            talk.sends(&proxy).await;
            assert_eq!(upstream.last().body, talk.request().to_string().as_bytes());
            talk.steps("true", "");
        }
    }
}

#[tokio::test]
async fn a_turn_that_was_stuck_before_it_came_here_is_seen_at_once() {
    let upstream = Upstream::start().await;
    let proxy = House::new("at-once").proxy(&upstream);
    for api in ALL {
        let mut talk = Talk::new(api, false, &format!("{api:?}"));
        for _ in 0..9 {
            talk.steps("true", "");
        }
        upstream.will(talk.answers("Noon."));
        talk.sends(&proxy).await;
        let seen = upstream.last().json();
        assert!(talk.forbids(&seen), "{api:?}");
        assert!(talk.said_last(&seen).contains("In the last 9 steps"));
    }
}

#[tokio::test]
async fn the_same_question_from_the_beginning_is_another_turn() {
    let upstream = Upstream::start().await;
    let proxy = House::new("anew").proxy(&upstream);
    for api in ALL {
        // The first one is given up while it is stuck.
        let mut talk = Talk::new(api, false, &format!("{api:?}"));
        talk.idles(&proxy, &upstream, 8).await;
        upstream.will(crate::upstream::Reply::of("application/json", "{}").with_status(529));
        talk.sends(&proxy).await;
        assert!(talk.forbids(&upstream.last().json()));
        let mut talk = Talk::new(api, false, &format!("{api:?}"));
        for _ in 0..4 {
            upstream.will(talk.calling());
            talk.sends(&proxy).await;
            assert_eq!(upstream.last().body, talk.request().to_string().as_bytes());
            talk.steps("true", "");
        }
    }
}

#[tokio::test]
async fn progress_begins_the_count_anew() {
    let upstream = Upstream::start().await;
    let proxy = House::new("progress").proxy(&upstream);
    let mut talk = Talk::new(Api::Chat, false, "s");
    talk.idles(&proxy, &upstream, 7).await;
    let news = "High tide at Dover is at 11:04 and again at 23:27 on that day.";
    talk.goes_on(&proxy, &upstream, "cat dover.md", news).await;
    for _ in 0..4 {
        upstream.will(talk.calling());
        talk.sends(&proxy).await;
        assert_eq!(upstream.last().body, talk.request().to_string().as_bytes());
        talk.steps("true", "");
    }
}

#[tokio::test]
async fn on_stall_sets_how_far_it_goes() {
    for (on_stall, nudges, reminds) in [
        ("nudge", true, true),
        ("warn", false, false),
        ("off", false, false),
    ] {
        let upstream = Upstream::start().await;
        let house = House::new(&format!("on-{on_stall}"))
            .configured(&format!("[loop_control]\non_stall = \"{on_stall}\""));
        let proxy = house.proxy(&upstream);
        let mut talk = Talk::new(Api::Responses, false, "s");
        for idle in 0..=9 {
            upstream.will(talk.calling());
            talk.sends(&proxy).await;
            let seen = upstream.last();
            let told = (idle == 4 && nudges) || (idle == 8 && reminds);
            let changed = seen.body != talk.request().to_string().as_bytes();
            assert_eq!(changed, told, "{on_stall}, {idle}");
            assert_eq!(seen.json()["tool_choice"], "auto");
            talk.steps("true", "");
        }
        let warned = proxy.house().told().contains("goes round in circles");
        assert_eq!(warned, on_stall == "warn", "{}", proxy.house().told());
        let house = proxy.stop();
        let known = house.run(&["session", "show", "s"]).status.success();
        assert_eq!(known, on_stall != "off");
    }
}

#[tokio::test]
async fn the_threshold_and_the_limit_of_steps_are_those_of_the_configuration() {
    let upstream = Upstream::start().await;
    let house = House::new("threshold").configured("[loop_control]\nmax_steps_per_turn = 3");
    let proxy = house.proxy(&upstream);
    let mut talk = Talk::new(Api::Anthropic, false, "s");
    for step in 0..3 {
        let news = format!(
            "{step}: {}",
            "words that nobody has read before ".repeat(step + 2)
        );
        talk.goes_on(&proxy, &upstream, &format!("cat {step}"), &news)
            .await;
    }
    upstream.will(talk.answers("So far."));
    talk.sends(&proxy).await;
    let seen = upstream.last().json();
    assert!(talk.forbids(&seen));
    let said = talk.said_last(&seen);
    assert!(
        said.starts_with("This turn has taken 3 steps, as many as it may."),
        "{said}"
    );
}

#[tokio::test]
async fn a_request_that_cannot_call_tools_is_left_alone() {
    let upstream = Upstream::start().await;
    let proxy = House::new("no-tools").proxy(&upstream);
    for api in ALL {
        let mut talk = Talk::new(api, false, &format!("{api:?}"));
        talk.idles(&proxy, &upstream, 8).await;
        for key in ["tools", "tool_choice"] {
            let mut request = talk.request();
            match key {
                "tools" => {
                    request.as_object_mut().unwrap().remove("tools");
                    request.as_object_mut().unwrap().remove("tool_choice");
                }
                _ => request[key] = json!("none"),
            }
            let headers = [("x-session-id", talk.session.as_str())];
            proxy
                .send_with(talk.path(), &headers, request.to_string())
                .await;
            assert_eq!(upstream.last().body, request.to_string().as_bytes());
        }
    }
}

#[tokio::test]
async fn a_server_that_remembers_the_conversation_is_watched_by_what_is_new() {
    let upstream = Upstream::start().await;
    let proxy = House::new("remembered").proxy(&upstream);
    let mut talk = Talk::new(Api::Responses, true, "unused");
    let mut previous = None;
    let mut last = json!(null);
    for step in 0..9 {
        let mut request = talk.request();
        if let Some(previous) = &previous {
            request["previous_response_id"] = json!(previous);
        }
        let id = format!("resp_{step}");
        let mut reply = match step {
            8 => talk.answers("Noon."),
            _ => talk.calling(),
        };
        let text = String::from_utf8(reply.bytes())
            .expect("text")
            .replace("resp_1", &id);
        reply.body = crate::upstream::Said::Whole(text.into_bytes());
        upstream.will(reply);
        // No header, no key: the answers that pass tell which conversation this is.
        let answer = proxy.send(talk.path(), request.to_string()).await;
        assert!(answer.status.is_success());
        last = upstream.last().json();
        previous = Some(id);
        let (_, result) = talk.pair("call_x", "true", "");
        talk.rows = vec![result];
    }
    assert!(talk.forbids(&last), "{last}");
    let said = talk.said_last(&last);
    assert!(
        said.contains("Bash `true`: "),
        "the call is known from the answer: {said}"
    );
}
