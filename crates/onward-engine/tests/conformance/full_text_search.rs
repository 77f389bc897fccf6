//! Full-text search: matches words, ranks the best result first, and treats no query as syntax.

use std::time::Duration;

use onward_core::PlanId;
use onward_core::policy::MAX_SEARCH;
use onward_engine::Source;
use onward_engine::search::{MAX_LIMIT, SearchRequest};

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{code, invalid_path};
use crate::research::finding;

fn request(query: &str) -> SearchRequest {
    SearchRequest {
        query: query.to_owned(),
        ..SearchRequest::default()
    }
}

impl Harness {
    async fn search_titles(&self, request: SearchRequest) -> Vec<String> {
        let found = self.engine.search(&self.me, request).await.unwrap().results;
        found.into_iter().map(|found| found.hit.title).collect()
    }
}

async fn ranks_texts_with_all_words_above_texts_with_some(harness: &Harness) {
    for (title, content) in [
        ("Neither", "an unrelated text"),
        ("Some", "tides tides tides tides tides"),
        (
            "Both",
            "a long text in which the moon comes up, and much later, once, tides",
        ),
    ] {
        harness.store(finding(title, content)).await;
    }
    assert_eq!(harness.titles("moon tides").await, ["Both", "Some"]);
    assert_eq!(harness.titles("Tides, moon!").await, ["Both", "Some"]);
    let found = harness
        .engine
        .search(&harness.me, request("moon tides"))
        .await;
    let found = found.unwrap().results;
    let ranks: Vec<_> = found.iter().map(|found| found.keyword_rank).collect();
    assert_eq!(ranks, [Some(1), Some(2)]);
    assert!((found[0].score - 1.0 / 61.0).abs() < 1e-9 && found[1].score < found[0].score);
}

async fn ranks_title_matches_and_frequent_words_higher(harness: &Harness) {
    let filler = "and so on, for quite a while, about this and that";
    for (title, content) in [
        ("Once", format!("herring {filler}")),
        ("Often", format!("herring {filler} herring, herring")),
        ("Herring", filler.to_owned()),
        ("Other", filler.to_owned()),
        ("Another", format!("{filler} {filler}")),
    ] {
        harness.store(finding(title, &content)).await;
    }
    assert_eq!(
        harness.titles("herring").await,
        ["Herring", "Often", "Once"]
    );
}

async fn returns_each_text_once_with_its_best_chunk(harness: &Harness) {
    let filler = "ebb and flow. ".repeat(400);
    let content = format!("{filler}\n\nThe whale sang. {filler} A whale. {filler}");
    let id = harness.store(finding("Long", &content)).await;
    let found = harness
        .engine
        .search(&harness.me, request("sang whale"))
        .await;
    let found = found.unwrap().results;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].hit.source, Source::Artifact(id));
    let snippet = &found[0].snippet;
    assert!(snippet.contains("The whale sang."), "{snippet}");
    // A text with the word in every chunk does not displace others.
    harness
        .store(finding("Chatter", &"whale ".repeat(150_000)))
        .await;
    harness
        .store(finding(
            "Short",
            "one whale among the many words of this text",
        ))
        .await;
    let mut titles = harness.titles("whale").await;
    titles.sort();
    assert_eq!(titles, ["Chatter", "Long", "Short"]);
}

async fn finds_only_the_latest_version_of_an_output(harness: &Harness) {
    let plan = harness.plan(1).await;
    harness
        .deliver(plan.id, "Answer", "draft, about herring")
        .await;
    let last = harness
        .deliver(plan.id, "Answer", "final, about herring")
        .await;
    let found = harness.engine.search(&harness.me, request("herring")).await;
    let found = found.unwrap().results;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].hit.source, Source::Output(last.id));
    assert_eq!(
        (found[0].hit.plan, &found[0].hit.kind),
        (Some(plan.id), &None)
    );
    assert_eq!(harness.titles("draft").await, [""; 0]);
}

async fn filters_by_plan_type_date_and_limit(harness: &Harness) {
    let (plan, other) = (harness.plan(1).await, harness.plan(1).await);
    let mut later = harness.now();
    for (title, plan, kind) in [
        ("Early note", Some(plan.id), None),
        ("Source", Some(plan.id), Some("source")),
        ("Elsewhere", Some(other.id), None),
        ("Loose", None, None),
    ] {
        later = harness.now();
        let mut found = finding(title, "about tides");
        found.plan = plan;
        found.kind = kind.map(str::to_owned);
        harness.store(found).await;
        harness.advance(Duration::from_secs(60));
    }
    harness.deliver(plan.id, "Output", "about tides").await;
    let sorted = async |request: SearchRequest| {
        let mut titles = harness.search_titles(request).await;
        titles.sort();
        titles
    };
    let all = request("tides");
    let in_plan = SearchRequest {
        plan: Some(plan.id),
        ..all.clone()
    };
    assert_eq!(sorted(in_plan).await, ["Early note", "Output", "Source"]);
    let kind = SearchRequest {
        kind: Some("source".to_owned()),
        ..all.clone()
    };
    assert_eq!(sorted(kind).await, ["Source"]);
    let after = SearchRequest {
        created_after: Some(later),
        ..all.clone()
    };
    assert_eq!(sorted(after).await, ["Loose", "Output"]);
    let before = SearchRequest {
        created_before: Some(later),
        ..all.clone()
    };
    assert_eq!(sorted(before).await, ["Early note", "Elsewhere", "Source"]);
    let first = SearchRequest {
        limit: Some(1),
        ..all.clone()
    };
    assert_eq!(harness.search_titles(first).await.len(), 1);
    let no_plan = SearchRequest {
        plan: Some(PlanId::from_u128(7)),
        ..all
    };
    let rejected = harness.engine.search(&harness.me, no_plan).await;
    assert_eq!(code(rejected), "plan_not_found");
}

async fn rejects_invalid_queries_with_their_path(harness: &Harness) {
    let long = "x".repeat(MAX_SEARCH + 1);
    for (invalid, path) in [
        (request(""), "query"),
        (request(&long), "query"),
        (
            SearchRequest {
                limit: Some(0),
                ..request("x")
            },
            "limit",
        ),
        (
            SearchRequest {
                limit: Some(MAX_LIMIT + 1),
                ..request("x")
            },
            "limit",
        ),
        (
            SearchRequest {
                kind: Some("unknown".to_owned()),
                ..request("x")
            },
            "artifactType",
        ),
    ] {
        let rejected = harness.engine.search(&harness.me, invalid).await;
        assert_eq!(invalid_path(rejected), path);
    }
}

async fn ignores_a_very_frequent_word_next_to_a_rare_one(harness: &Harness) {
    let content = "ebb ".repeat(260_000);
    let mut chunks = 0;
    while chunks < 2_000 {
        let stored = finding("Everywhere", &content);
        let stored = harness.engine.store_research(&harness.me, stored).await;
        chunks += stored.unwrap().chunks;
    }
    harness.store(finding("Rare", "a narwhal")).await;
    assert_eq!(harness.titles("narwhal ebb").await, ["Rare"]);
    assert_eq!(harness.titles("ebb").await[0], "Everywhere");
    // Without a match for the rarer word, the frequent word is searched.
    assert_eq!(harness.titles("ebb nowhere").await[0], "Everywhere");
    harness.store(finding("Both", "an ebb and a narwhal")).await;
    assert_eq!(harness.titles("ebb narwhal").await, ["Both", "Rare"]);
}

/// Characters and operators with a meaning in the query syntax of one of the backends.
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

async fn treats_query_operators_as_text(harness: &Harness) {
    harness
        .store(finding("Whales", "The blue whale sings."))
        .await;
    for operator in SYNTAX {
        for query in [
            format!("{operator}whale"),
            format!("whale {operator}"),
            format!("{operator}{operator} whale {operator}{operator}"),
            format!("blue {operator} whale"),
        ] {
            assert_eq!(harness.titles(&query).await, ["Whales"], "{query:?}");
        }
        harness.titles(operator).await;
    }
    for no_words in ["...", "\u{FFFD}", "\0", "🌊", "\u{200b}", " "] {
        assert_eq!(harness.titles(no_words).await, [""; 0], "{no_words:?}");
    }
    let long = "whale ".repeat(MAX_SEARCH / 6);
    assert_eq!(harness.titles(&long).await, ["Whales"]);
    let many: String = (0..250).map(|number| format!("w{number} ")).collect();
    assert_eq!(harness.titles(&many[..MAX_SEARCH]).await, [""; 0]);
    assert_eq!(harness.titles(&"x".repeat(MAX_SEARCH)).await, [""; 0]);
}

/// Random queries, mostly of special characters.
async fn accepts_random_queries(harness: &Harness) {
    harness
        .store(finding("Whales", "The blue whale sings."))
        .await;
    let characters: Vec<char> = "\"'*^:-()&|!<>\\\0% aZ9é潮\u{308}\u{202e}{}[]?+~$"
        .chars()
        .collect();
    for _ in 0..300 {
        let length = harness.environment.random_below(40) + 1;
        let count = u64::try_from(characters.len()).unwrap();
        let query: String = (0..length)
            .map(|_| characters[usize::try_from(harness.environment.random_below(count)).unwrap()])
            .collect();
        let found = harness.engine.search(&harness.me, request(&query)).await;
        assert!(found.is_ok(), "{query:?}: {found:?}");
        let found = harness.titles(&format!("{query} whale")).await;
        assert_eq!(found, ["Whales"], "{query:?}");
    }
}

async fn matches_words_across_scripts_and_unicode_forms(harness: &Harness) {
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
        harness.store(finding(query, content)).await;
        let found = harness.titles(query).await;
        assert!(
            found.contains(&query.to_owned()),
            "{query} in {content}: {found:?}"
        );
    }
}

async fn does_not_find_texts_of_another_tenant(harness: &Harness) {
    let other = harness.create_tenant("other").await;
    let plan = harness.create_for(&other, harness.draft(1)).await;
    let theirs = finding("Theirs", "the whale, the whale");
    harness.engine.store_research(&other, theirs).await.unwrap();
    let output = crate::research::deliverable(plan.id, "Theirs", "the whale");
    harness.engine.store_output(&other, output).await.unwrap();
    assert_eq!(harness.titles("whale").await, [""; 0]);
    harness.store(finding("Ours", "a whale")).await;
    assert_eq!(harness.titles("whale").await, ["Ours"]);
    let found = harness
        .engine
        .search(&other, request("whale"))
        .await
        .unwrap()
        .results;
    assert_eq!(found.len(), 2);
}

on_both_databases![
    ranks_texts_with_all_words_above_texts_with_some,
    ranks_title_matches_and_frequent_words_higher,
    returns_each_text_once_with_its_best_chunk,
    finds_only_the_latest_version_of_an_output,
    filters_by_plan_type_date_and_limit,
    rejects_invalid_queries_with_their_path,
    ignores_a_very_frequent_word_next_to_a_rare_one,
    treats_query_operators_as_text,
    accepts_random_queries,
    matches_words_across_scripts_and_unicode_forms,
    does_not_find_texts_of_another_tenant,
];
