//! Tokens: shown once, stored as a hash, good until they end or are taken back.

use std::time::Duration;

use onward_core::Role;
use onward_engine::{Entrance, Error};

use crate::desk::Desk;
use crate::on_both_databases;
use crate::place::Place;
use crate::verbs::{code, error};

const REFUSED: &str = "the token is unknown, expired or revoked";

async fn a_token_lets_its_holder_in_with_its_role(desk: &Desk) {
    for role in Role::ALL {
        let name = format!("for the {role}");
        let made = desk.engine.create_token(&desk.me, &name, role, None).await;
        let (secret, token) = made.unwrap();
        assert_eq!((secret.len(), &secret[..4]), (44, "onw_"));
        assert!(secret[4..].chars().all(|char| char.is_ascii_hexdigit()));
        assert_eq!(token.prefix, secret[..12]);
        let caller = desk.engine.authenticate(&secret).await.unwrap();
        assert_eq!((caller.role, &caller.tenant), (role, &desk.me.tenant));
        assert_eq!(caller.name, format!("token:{name}"));
        let listed = desk.engine.list_plans(&caller, Default::default()).await;
        assert!(listed.is_ok());
    }
}

async fn a_token_that_is_unknown_expired_or_revoked_is_refused_in_the_same_words(desk: &Desk) {
    let ends = desk.now().checked_add(Duration::from_secs(60));
    let short = desk
        .engine
        .create_token(&desk.me, "short", Role::Agent, ends)
        .await
        .unwrap()
        .0;
    let taken = desk
        .engine
        .create_token(&desk.me, "taken", Role::Agent, None)
        .await
        .unwrap()
        .0;
    desk.engine.authenticate(&taken).await.unwrap();
    desk.engine.revoke_token(&desk.me, "taken").await.unwrap();
    desk.advance(Duration::from_millis(59_999));
    desk.engine
        .authenticate(&short)
        .await
        .expect("until it ends it is good");
    desk.advance(Duration::from_millis(1));
    let unknown = format!("onw_{}", "0".repeat(40));
    for secret in [
        &short,
        &taken,
        &unknown,
        "",
        "onw_",
        &short[..43],
        &short.to_uppercase(),
    ] {
        let why = error(desk.engine.authenticate(secret).await);
        assert_eq!(why.code().as_str(), "unauthorized", "{secret}");
        assert_eq!(why.to_string(), REFUSED, "{secret}");
    }
}

async fn a_token_is_taken_back_by_name_id_or_beginning_once(desk: &Desk) {
    let make = async |name: &str| {
        desk.engine
            .create_token(&desk.me, name, Role::Agent, None)
            .await
            .unwrap()
            .1
    };
    make("a").await;
    let (b, c) = (make("b").await, make("c").await);
    for named in ["a", &b.id.to_string(), &c.prefix] {
        desk.engine.revoke_token(&desk.me, named).await.unwrap();
        let again = desk.engine.revoke_token(&desk.me, named).await;
        assert!(matches!(again, Err(Error::NotFound { .. })), "{again:?}");
    }
    let tokens = desk.engine.tokens(&desk.me).await.unwrap();
    assert!(
        tokens
            .iter()
            .all(|token| token.revoked_at == Some(desk.now()))
    );
    assert_eq!(tokens.len(), 3, "they stay in the list");
}

async fn of_two_tokens_with_one_name_none_is_taken_back(desk: &Desk) {
    for _ in 0..2 {
        let made = desk
            .engine
            .create_token(&desk.me, "twice", Role::Agent, None)
            .await;
        made.unwrap();
    }
    let refused = desk.engine.revoke_token(&desk.me, "twice").await;
    assert!(matches!(refused, Err(Error::Ambiguous(_))), "{refused:?}");
}

async fn a_name_and_an_end_must_fit(desk: &Desk) {
    let make = async |name: &str, ends| {
        desk.engine
            .create_token(&desk.me, name, Role::Agent, ends)
            .await
    };
    assert_eq!(code(make(" ", None).await), "invalid_input");
    assert_eq!(code(make(&"x".repeat(101), None).await), "invalid_input");
    assert_eq!(code(make("now", Some(desk.now())).await), "invalid_input");
    make(&"🌊".repeat(100), Some(desk.now().next()))
        .await
        .unwrap();
}

async fn the_last_use_is_noted_once_a_minute(desk: &Desk) {
    let secret = desk
        .engine
        .create_token(&desk.me, "t", Role::Agent, None)
        .await
        .unwrap()
        .0;
    let noted = async || desk.engine.tokens(&desk.me).await.unwrap()[0].last_used_at;
    assert_eq!(noted().await, None);
    let first = desk.now();
    desk.engine.authenticate(&secret).await.unwrap();
    assert_eq!(noted().await, Some(first));
    desk.advance(Duration::from_millis(59_999));
    desk.engine.authenticate(&secret).await.unwrap();
    assert_eq!(noted().await, Some(first));
    desk.advance(Duration::from_millis(1));
    desk.engine.authenticate(&secret).await.unwrap();
    assert_eq!(noted().await, Some(desk.now()));
}

/// All that the database holds, as bytes or as text.
fn dump(place: &Place) -> Vec<u8> {
    match place {
        Place::File(folder) => {
            let files = std::fs::read_dir(folder.path()).unwrap();
            files
                .flat_map(|file| std::fs::read(file.unwrap().path()).unwrap())
                .collect()
        }
        Place::Server(_) => {
            let tables = place.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public'");
            let rows = |table: &str| format!("SELECT t::text FROM {table} AS t;");
            let all: String = tables.unwrap().lines().map(rows).collect();
            place.sql(&all).unwrap().into_bytes()
        }
    }
}

async fn only_the_hash_of_a_token_is_stored(desk: &Desk) {
    let made = desk
        .engine
        .create_token(&desk.me, "secret", Role::Owner, None)
        .await;
    let (secret, token) = made.unwrap();
    let caller = desk.engine.authenticate(&secret).await.unwrap();
    desk.create_for(&caller, desk.draft(1)).await;
    let stored = dump(&desk.place);
    let holds = |text: &str| {
        stored
            .windows(text.len())
            .any(|window| window == text.as_bytes())
    };
    assert!(holds(&token.prefix), "what is shown of it is stored");
    assert!(!holds(&secret), "the secret is stored");
    assert!(!holds(&secret[4..]), "the secret is stored");
    assert!(!holds(&secret[12..]), "the secret is stored");
}

async fn what_is_done_with_tokens_stands_in_the_log(desk: &Desk) {
    desk.engine
        .create_token(&desk.me, "t", Role::Agent, None)
        .await
        .unwrap();
    desk.advance(Duration::from_millis(1));
    desk.engine.revoke_token(&desk.me, "t").await.unwrap();
    let log = desk.engine.tenant_log(&desk.me, 9).await.unwrap();
    let actions: Vec<&str> = log.iter().map(|line| line.action.as_str()).collect();
    assert_eq!(actions, ["token_revoked", "token_created"]);
    assert_eq!(log[0].details["role"], "agent");
}

async fn members_hold_a_good_token_or_came_through_the_provider(desk: &Desk) {
    let engine = &desk.engine;
    for name in ["ann", "gone"] {
        let made = engine.create_token(&desk.me, name, Role::Member, None);
        made.await.unwrap();
    }
    let soon = desk.now().checked_add(Duration::from_secs(60));
    let brief = engine.create_token(&desk.me, "brief", Role::Agent, soon);
    brief.await.unwrap();
    engine.revoke_token(&desk.me, "gone").await.unwrap();
    desk.advance(Duration::from_secs(61));
    let mut bob = desk.me.clone();
    bob.name = "user:bob".to_owned();
    bob.role = Role::Admin;
    engine.note_sign_in(&bob).await.unwrap();
    desk.advance(Duration::from_secs(1));
    bob.role = Role::Viewer;
    engine.note_sign_in(&bob).await.unwrap();
    let last = desk.now();
    let members = engine.members(&desk.me).await.unwrap();
    let told: Vec<_> = members
        .iter()
        .map(|member| (member.name.as_str(), member.role, member.by))
        .collect();
    assert_eq!(
        told,
        [
            ("token:ann", Role::Member, Entrance::Token),
            ("user:bob", Role::Viewer, Entrance::Provider),
        ],
        "nobody who is gone, and what the provider said last"
    );
    assert_eq!(members[0].last_seen_at, None);
    assert_eq!(members[1].last_seen_at, Some(last));
    let elsewhere = desk.tenant("members").await;
    assert_eq!(engine.members(&elsewhere).await.unwrap(), []);
}

on_both_databases![
    members_hold_a_good_token_or_came_through_the_provider,
    a_token_lets_its_holder_in_with_its_role,
    a_token_that_is_unknown_expired_or_revoked_is_refused_in_the_same_words,
    a_token_is_taken_back_by_name_id_or_beginning_once,
    of_two_tokens_with_one_name_none_is_taken_back,
    a_name_and_an_end_must_fit,
    the_last_use_is_noted_once_a_minute,
    what_is_done_with_tokens_stands_in_the_log,
];

/// All that the database holds is looked through.
mod alone {
    use super::only_the_hash_of_a_token_is_stored;
    crate::on_both_databases![alone: only_the_hash_of_a_token_is_stored];
}
