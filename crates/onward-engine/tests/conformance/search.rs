//! What was stored is found again, by words and nothing but words, the best first.

use std::time::Duration;

use onward_core::PlanId;
use onward_core::policy::MAX_SEARCH;
use onward_engine::Source;
use onward_engine::search::{MOST, Wanted};

use crate::desk::Desk;
use crate::on_both_databases;
use crate::place::Place;
use crate::research::finding;
use crate::verbs::{code, error};

fn wanted(query: &str) -> Wanted {
    Wanted {
        query: query.to_owned(),
        ..Wanted::default()
    }
}

impl Desk {
    async fn found(&self, wanted: Wanted) -> Vec<String> {
        let found = self.engine.search(&self.me, wanted).await.unwrap().found;
        found.into_iter().map(|found| found.hit.title).collect()
    }
}

async fn what_holds_all_words_comes_before_what_holds_some(desk: &Desk) {
    for (title, content) in [
        ("Neither", "nothing of the kind"),
        ("Some", "tides tides tides tides tides"),
        (
            "Both",
            "a long text in which the moon comes up, and much later, once, tides",
        ),
    ] {
        desk.store(finding(title, content)).await;
    }
    assert_eq!(desk.titles("moon tides").await, ["Both", "Some"]);
    assert_eq!(desk.titles("Tides, moon!").await, ["Both", "Some"]);
    let found = desk.engine.search(&desk.me, wanted("moon tides")).await;
    let found = found.unwrap().found;
    let ranks: Vec<_> = found.iter().map(|found| found.keyword_rank).collect();
    assert_eq!(ranks, [Some(1), Some(2)]);
    assert!((found[0].score - 1.0 / 61.0).abs() < 1e-9 && found[1].score < found[0].score);
}

async fn what_is_said_in_a_title_or_more_often_fits_better(desk: &Desk) {
    let filler = "and so on, for quite a while, about this and that";
    for (title, content) in [
        ("Once", format!("herring {filler}")),
        ("Often", format!("herring {filler} herring, herring")),
        ("Herring", filler.to_owned()),
        ("Other", filler.to_owned()),
        ("Another", format!("{filler} {filler}")),
    ] {
        desk.store(finding(title, &content)).await;
    }
    assert_eq!(desk.titles("herring").await, ["Herring", "Often", "Once"]);
}

async fn a_text_is_found_once_by_its_best_chunk(desk: &Desk) {
    let filler = "ebb and flow. ".repeat(400);
    let content = format!("{filler}\n\nThe whale sang. {filler} A whale. {filler}");
    let id = desk.store(finding("Long", &content)).await;
    let found = desk.engine.search(&desk.me, wanted("sang whale")).await;
    let found = found.unwrap().found;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].hit.source, Source::Artifact(id));
    let snippet = &found[0].snippet;
    assert!(snippet.contains("The whale sang."), "{snippet}");
    // One that has the word in every chunk hides nobody.
    desk.store(finding("Chatter", &"whale ".repeat(150_000)))
        .await;
    desk.store(finding(
        "Short",
        "one whale among the many words of this text",
    ))
    .await;
    let mut titles = desk.titles("whale").await;
    titles.sort();
    assert_eq!(titles, ["Chatter", "Long", "Short"]);
}

async fn only_the_last_version_of_an_output_is_found(desk: &Desk) {
    let plan = desk.plan(1).await;
    desk.deliver(plan.id, "Answer", "draft, about herring")
        .await;
    let last = desk
        .deliver(plan.id, "Answer", "final, about herring")
        .await;
    let found = desk.engine.search(&desk.me, wanted("herring")).await;
    let found = found.unwrap().found;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].hit.source, Source::Output(last.id));
    assert_eq!(
        (found[0].hit.plan, &found[0].hit.kind),
        (Some(plan.id), &None)
    );
    assert_eq!(desk.titles("draft").await, [""; 0]);
}

async fn what_is_found_can_be_narrowed_down(desk: &Desk) {
    let (plan, other) = (desk.plan(1).await, desk.plan(1).await);
    let begun = desk.now();
    let mut later = begun;
    for (title, of, kind) in [
        ("Early note", Some(plan.id), None),
        ("Source", Some(plan.id), Some("source")),
        ("Elsewhere", Some(other.id), None),
        ("Loose", None, None),
    ] {
        later = desk.now();
        let mut found = finding(title, "about tides");
        found.plan = of;
        found.kind = kind.map(str::to_owned);
        desk.store(found).await;
        desk.advance(Duration::from_secs(60));
    }
    desk.deliver(plan.id, "Output", "about tides").await;
    let sorted = async |wanted: Wanted| {
        let mut titles = desk.found(wanted).await;
        titles.sort();
        titles
    };
    let all = wanted("tides");
    let of = Wanted {
        plan: Some(plan.id),
        ..all.clone()
    };
    assert_eq!(sorted(of).await, ["Early note", "Output", "Source"]);
    let kind = Wanted {
        kind: Some("source".to_owned()),
        ..all.clone()
    };
    assert_eq!(sorted(kind).await, ["Source"]);
    let after = Wanted {
        created_after: Some(later),
        ..all.clone()
    };
    assert_eq!(sorted(after).await, ["Loose", "Output"]);
    let before = Wanted {
        created_before: Some(later),
        ..all.clone()
    };
    assert_eq!(sorted(before).await, ["Early note", "Elsewhere", "Source"]);
    let first = Wanted {
        limit: Some(1),
        ..all.clone()
    };
    assert_eq!(desk.found(first).await.len(), 1);
    let nowhere = Wanted {
        plan: Some(PlanId::from_u128(7)),
        ..all
    };
    let refused = desk.engine.search(&desk.me, nowhere).await;
    assert_eq!(code(refused), "plan_not_found");
}

async fn what_does_not_fit_is_refused_by_its_path(desk: &Desk) {
    let long = "x".repeat(MAX_SEARCH + 1);
    for (misfit, path) in [
        (wanted(""), "query"),
        (wanted(&long), "query"),
        (
            Wanted {
                limit: Some(0),
                ..wanted("x")
            },
            "limit",
        ),
        (
            Wanted {
                limit: Some(MOST + 1),
                ..wanted("x")
            },
            "limit",
        ),
        (
            Wanted {
                kind: Some("rumour".to_owned()),
                ..wanted("x")
            },
            "artifactType",
        ),
    ] {
        let refused = error(desk.engine.search(&desk.me, misfit).await);
        assert!(refused.to_string().contains(path), "{path}: {refused}");
    }
}

async fn a_word_that_is_everywhere_is_not_looked_for_beside_a_rare_one(desk: &Desk) {
    let everywhere = "ebb ".repeat(260_000);
    let mut chunks = 0;
    while chunks < 2_000 {
        let stored = finding("Everywhere", &everywhere);
        let stored = desk.engine.store_research(&desk.me, stored).await;
        chunks += stored.unwrap().chunks;
    }
    desk.store(finding("Rare", "a narwhal")).await;
    assert_eq!(desk.titles("narwhal ebb").await, ["Rare"]);
    assert_eq!(desk.titles("ebb").await[0], "Everywhere");
    // Where nothing rarer is there, it is.
    assert_eq!(desk.titles("ebb nowhere").await[0], "Everywhere");
    desk.store(finding("Both", "an ebb and a narwhal")).await;
    assert_eq!(desk.titles("ebb narwhal").await, ["Both", "Rare"]);
}

/// What means something to one of the databases, or did once, around a word that must be found.
const SYNTAX: [&str; 30] = [
    "\"",
    "\"\"",
    "'",
    "''",
    "*",
    "^",
    ":",
    "title:",
    "title : ",
    "-",
    "NOT ",
    "OR ",
    "AND ",
    "NEAR(",
    "NEAR(a b, 3)",
    "(",
    ")",
    "{title} : ",
    "&",
    "|",
    "!",
    "<->",
    "<2>",
    ":*",
    ":A ",
    "\\",
    "\0",
    "%",
    "$1 ",
    "; DROP TABLE chunks; --",
];

async fn a_query_is_words_and_never_syntax(desk: &Desk) {
    desk.store(finding("Whales", "The blue whale sings.")).await;
    for sign in SYNTAX {
        for query in [
            format!("{sign}whale"),
            format!("whale {sign}"),
            format!("{sign}{sign} whale {sign}{sign}"),
            format!("blue {sign} whale"),
        ] {
            assert_eq!(desk.titles(&query).await, ["Whales"], "{query:?}");
        }
        desk.titles(sign).await;
    }
    for nothing in ["...", "\u{FFFD}", "\0", "🌊", "\u{200b}", " "] {
        assert_eq!(desk.titles(nothing).await, [""; 0], "{nothing:?}");
    }
    let long = "whale ".repeat(MAX_SEARCH / 6);
    assert_eq!(desk.titles(&long).await, ["Whales"]);
    let many: String = (0..250).map(|number| format!("w{number} ")).collect();
    assert_eq!(desk.titles(&many[..MAX_SEARCH]).await, [""; 0]);
    assert_eq!(desk.titles(&"x".repeat(MAX_SEARCH)).await, [""; 0]);
}

/// Queries of random characters, most of them signs.
async fn no_query_is_too_strange(desk: &Desk) {
    desk.store(finding("Whales", "The blue whale sings.")).await;
    let signs: Vec<char> = "\"'*^:-()&|!<>\\\0% aZ9é潮\u{308}\u{202e}{}[]?+~$"
        .chars()
        .collect();
    for _ in 0..300 {
        let length = desk.world.below(40) + 1;
        let count = u64::try_from(signs.len()).unwrap();
        let query: String = (0..length)
            .map(|_| signs[usize::try_from(desk.world.below(count)).unwrap()])
            .collect();
        let found = desk.engine.search(&desk.me, wanted(&query)).await;
        assert!(found.is_ok(), "{query:?}: {found:?}");
        let found = desk.titles(&format!("{query} whale")).await;
        assert_eq!(found, ["Whales"], "{query:?}");
    }
}

async fn words_are_the_same_in_every_script_and_form(desk: &Desk) {
    for (content, query) in [
        ("Zürich liegt am See", "zurich"),
        ("Zu\u{308}rich am Fluss", "ZÜRICH"),
        ("Ночной прилив", "прилив"),
        ("潮汐は月の引力による", "月"),
        ("हिन्दी में ज्वार", "हिन्दी"),
        ("조석 현상", "조석"),
        ("release v2.10.3-rc1", "2 10 3 rc1"),
        ("snake_case_name", "case"),
        (
            "mail to a.b@example.org, see https://example.org/x?y=1",
            "example",
        ),
        ("−40 °C and 1e5 and 0x1F", "0x1f"),
        ("x²y ½ ﬁne", "fine"),
        ("ᾳ Ὀδυσσεύς", "οδυσσευς"),
        (&"é".repeat(90), &"é".repeat(70)),
    ] {
        desk.store(finding(query, content)).await;
        let found = desk.titles(query).await;
        assert!(
            found.contains(&query.to_owned()),
            "{query} in {content}: {found:?}"
        );
    }
}

async fn one_tenant_finds_nothing_of_another(desk: &Desk) {
    let other = desk.tenant("other").await;
    let plan = desk.create_for(&other, desk.draft(1)).await;
    let theirs = finding("Theirs", "the whale, the whale");
    desk.engine.store_research(&other, theirs).await.unwrap();
    let output = crate::research::deliverable(plan.id, "Theirs", "the whale");
    desk.engine.store_output(&other, output).await.unwrap();
    assert_eq!(desk.titles("whale").await, [""; 0]);
    desk.store(finding("Ours", "a whale")).await;
    assert_eq!(desk.titles("whale").await, ["Ours"]);
    let found = desk
        .engine
        .search(&other, wanted("whale"))
        .await
        .unwrap()
        .found;
    assert_eq!(found.len(), 2);
}

/// The first two schemas, with something that was kept then.
async fn what_was_kept_before_there_was_an_index_is_found(desk: &Desk) {
    let place = Place::fresh(desk.place.kind());
    crate::migrations::make_the_first(&place);
    let id = match place.kind() {
        crate::place::Kind::Sqlite => "X'00000000000040008000000000000007'",
        crate::place::Kind::Postgres => "'00000000-0000-4000-8000-000000000007'",
    };
    let kept = format!(
        "INSERT INTO artifacts VALUES ('local', {id}, NULL, NULL, 'late_result', 'Early', \
         '{{\"resultSummary\":\"a Whale of a result\"}}', NULL, '{{}}', 1)"
    );
    place.sql(&kept).unwrap();
    let settings = onward_engine::engine::Settings::default();
    let engine = onward_engine::Engine::open(&place.address(), settings).await;
    let engine = engine.unwrap();
    let me = onward_engine::Caller::local("me");
    let found = engine.search(&me, wanted("whale")).await.unwrap().found;
    assert_eq!(found[0].hit.title, "Early");
    assert!(found[0].snippet.contains("Whale"), "{}", found[0].snippet);
    engine.close().await;
}

on_both_databases![
    what_holds_all_words_comes_before_what_holds_some,
    what_is_said_in_a_title_or_more_often_fits_better,
    a_text_is_found_once_by_its_best_chunk,
    only_the_last_version_of_an_output_is_found,
    what_is_found_can_be_narrowed_down,
    what_does_not_fit_is_refused_by_its_path,
    a_word_that_is_everywhere_is_not_looked_for_beside_a_rare_one,
    a_query_is_words_and_never_syntax,
    no_query_is_too_strange,
    words_are_the_same_in_every_script_and_form,
    one_tenant_finds_nothing_of_another,
    what_was_kept_before_there_was_an_index_is_found,
];
