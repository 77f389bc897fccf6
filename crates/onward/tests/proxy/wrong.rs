//! What happens where something is wrong: with the API, with the database, with us.

use crate::house::House;
use crate::speech::{ALL, Api, Talk};
use crate::upstream::{Reply, Upstream};

#[tokio::test]
async fn an_api_that_cannot_be_reached_is_an_error_in_its_own_form() {
    let proxy = House::new("unreached").proxy_to("http://127.0.0.1:1");
    for api in ALL {
        let answer = Talk::new(api, true, "s").sends(&proxy).await;
        assert_eq!(answer.status.as_u16(), 502);
        assert_eq!(answer.headers["content-type"], "application/json");
        let error = answer.json();
        if api == Api::Anthropic {
            assert_eq!(error["type"], "error");
            assert_eq!(error["error"]["type"], "api_error");
        } else {
            assert_eq!(error["error"]["type"], "server_error");
        }
        let message = error["error"]["message"].as_str().expect("a message");
        assert!(
            message.starts_with("onward proxy: the API cannot be reached"),
            "{message}"
        );
        assert!(message.contains("--upstream"), "{message}");
    }
    let models = proxy.client.get(format!("{}/v1/models", proxy.url)).send();
    assert_eq!(models.await.expect("it answers").status().as_u16(), 502);
}

#[tokio::test]
async fn an_answer_that_is_garbage_passes_as_it_is() {
    let upstream = Upstream::start().await;
    let proxy = House::new("garbage").proxy(&upstream);
    for api in ALL {
        for (number, (kind, garbage)) in [
            ("application/json", "no json"),
            ("application/json", "{\"a\":1}"),
            (
                "text/event-stream",
                "no: event\n\ndata: {\n\ndata: [1]\n\nrest",
            ),
            ("text/html", "<p>Bad gateway"),
        ]
        .into_iter()
        .enumerate()
        {
            for idle in [0, 8] {
                let name = format!("{api:?}-{number}-{idle}");
                let mut talk = Talk::new(api, kind == "text/event-stream", &name);
                talk.idles(&proxy, &upstream, idle).await;
                upstream.will(Reply::of(kind, garbage));
                let answer = talk.sends(&proxy).await;
                assert_eq!(answer.body, garbage.as_bytes(), "{name}");
                assert_eq!(answer.headers["content-type"], kind);
            }
        }
    }
}

#[tokio::test]
async fn without_a_database_everything_passes_and_it_is_said_once() {
    let upstream = Upstream::start().await;
    for (name, database) in [
        ("no-folder", "/dev/null/onward.db".to_owned()),
        ("no-server", "postgres://nobody@127.0.0.1:1/none".to_owned()),
    ] {
        let proxy = House::new(name).on(database).proxy(&upstream);
        let mut talk = Talk::new(Api::Anthropic, true, "s");
        for _ in 0..10 {
            upstream.will(talk.calling());
            talk.sends(&proxy).await;
            assert_eq!(upstream.last().body, talk.request().to_string().as_bytes());
            talk.steps("true", "");
        }
        // What needs no memory is done all the same.
        talk.rows.pop();
        talk.asks("Well?");
        talk.sends(&proxy).await;
        assert_ne!(upstream.last().body, talk.request().to_string().as_bytes());
        let house = proxy.stop();
        let told = house.told();
        assert_eq!(
            told.matches("database is not available").count(),
            1,
            "{told}"
        );
        assert!(told.contains("requests pass"), "{told}");
    }
}

#[tokio::test]
async fn a_database_that_goes_away_stops_nobody() {
    let upstream = Upstream::start().await;
    let proxy = House::new("goes-away").proxy(&upstream);
    let mut talk = Talk::new(Api::Chat, false, "s");
    talk.idles(&proxy, &upstream, 3).await;
    let file = proxy.house().folder.join("onward.db");
    let broken = rusqlite::Connection::open(&file).expect("it opens");
    broken
        .execute_batch("DROP TABLE turn_steps; DROP TABLE session_agents;")
        .expect("it can be broken");
    for _ in 0..10 {
        upstream.will(talk.calling());
        let answer = talk.sends(&proxy).await;
        assert!(answer.status.is_success());
        assert_eq!(upstream.last().body, talk.request().to_string().as_bytes());
        talk.steps("true", "");
    }
    let told = proxy.stop().told();
    assert!(told.contains("the database is not available"), "{told}");
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_with_a_hint() {
    let house = House::new("usage");
    for (arguments, code, told) in [
        (
            &["proxy", "--bind", "7172"][..],
            2,
            "is no address with a port",
        ),
        (
            &["proxy", "--bind", "0.0.0.0:0"],
            4,
            "can be reached from other machines",
        ),
        (&["proxy", "--upstream", "example.com"], 2, "is no address"),
        (
            &["proxy", "--upstream", "ftp://a"],
            2,
            "does not begin with",
        ),
        (
            &["proxy", "--upstream", "http://me:secret@a"],
            2,
            "holds a password",
        ),
    ] {
        let output = house.run(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains(told) && error.contains("hint: "), "{error}");
        assert!(output.stdout.is_empty());
    }
}
