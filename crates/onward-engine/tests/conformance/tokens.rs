//! Access tokens: returned once, stored as a hash, valid until they expire or are revoked.

use std::time::Duration;

use onward_core::Role;
use onward_engine::{Error, SignInMethod};

use crate::database::TestDatabase;
use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{code, error};

async fn a_token_authenticates_with_its_role(harness: &Harness) {
    for role in Role::ALL {
        let name = format!("for the {role}");
        let created = harness
            .engine
            .create_token(&harness.me, &name, role, None)
            .await;
        let (secret, token) = created.unwrap();
        assert_eq!((secret.len(), &secret[..4]), (44, "onw_"));
        assert!(secret[4..].chars().all(|char| char.is_ascii_hexdigit()));
        assert_eq!(token.prefix, secret[..12]);
        let caller = harness.engine.authenticate(&secret).await.unwrap();
        assert_eq!((caller.role, &caller.tenant), (role, &harness.me.tenant));
        assert_eq!(caller.name, format!("token:{name}"));
        let listed = harness.engine.list_plans(&caller, Default::default()).await;
        assert!(listed.is_ok());
    }
}

async fn rejects_unknown_expired_and_revoked_tokens_with_the_same_error(harness: &Harness) {
    let expires_at = harness.now().checked_add(Duration::from_secs(60));
    let short = harness
        .engine
        .create_token(&harness.me, "short", Role::Agent, expires_at)
        .await
        .unwrap()
        .0;
    let revoked = harness
        .engine
        .create_token(&harness.me, "revoked", Role::Agent, None)
        .await
        .unwrap()
        .0;
    harness.engine.authenticate(&revoked).await.unwrap();
    harness
        .engine
        .revoke_token(&harness.me, "revoked")
        .await
        .unwrap();
    harness.advance(Duration::from_millis(59_999));
    harness
        .engine
        .authenticate(&short)
        .await
        .expect("token has not expired");
    harness.advance(Duration::from_millis(1));
    let unknown = format!("onw_{}", "0".repeat(40));
    let expected = error(harness.engine.authenticate(&unknown).await).to_string();
    for secret in [
        &short,
        &revoked,
        &unknown,
        "",
        "onw_",
        &short[..43],
        &short.to_uppercase(),
    ] {
        let err = error(harness.engine.authenticate(secret).await);
        assert_eq!(err.code().as_str(), "unauthorized", "{secret}");
        assert_eq!(err.to_string(), expected, "{secret}");
    }
}

async fn revokes_a_token_by_name_id_or_prefix_once(harness: &Harness) {
    let create = async |name: &str| {
        harness
            .engine
            .create_token(&harness.me, name, Role::Agent, None)
            .await
            .unwrap()
            .1
    };
    create("a").await;
    let (b, c) = (create("b").await, create("c").await);
    for reference in ["a", &b.id.to_string(), &c.prefix] {
        harness
            .engine
            .revoke_token(&harness.me, reference)
            .await
            .unwrap();
        let again = harness.engine.revoke_token(&harness.me, reference).await;
        assert!(matches!(again, Err(Error::NotFound { .. })), "{again:?}");
    }
    let tokens = harness.engine.tokens(&harness.me).await.unwrap();
    assert!(
        tokens
            .iter()
            .all(|token| token.revoked_at == Some(harness.now()))
    );
    assert_eq!(tokens.len(), 3, "revoked tokens stay in the list");
}

async fn rejects_revoking_an_ambiguous_name(harness: &Harness) {
    for _ in 0..2 {
        let created = harness
            .engine
            .create_token(&harness.me, "same", Role::Agent, None)
            .await;
        created.unwrap();
    }
    let rejected = harness.engine.revoke_token(&harness.me, "same").await;
    assert!(
        matches!(rejected, Err(Error::Ambiguous { .. })),
        "{rejected:?}"
    );
}

async fn rejects_invalid_names_and_expiry_times(harness: &Harness) {
    let create = async |name: &str, expires_at| {
        harness
            .engine
            .create_token(&harness.me, name, Role::Agent, expires_at)
            .await
    };
    assert_eq!(code(create(" ", None).await), "invalid_input");
    assert_eq!(code(create(&"x".repeat(101), None).await), "invalid_input");
    assert_eq!(
        code(create("now", Some(harness.now())).await),
        "invalid_input"
    );
    create(&"🌊".repeat(100), Some(harness.now().next()))
        .await
        .unwrap();
}

async fn records_the_last_use_at_most_once_a_minute(harness: &Harness) {
    let secret = harness
        .engine
        .create_token(&harness.me, "t", Role::Agent, None)
        .await
        .unwrap()
        .0;
    let last_used = async || harness.engine.tokens(&harness.me).await.unwrap()[0].last_used_at;
    assert_eq!(last_used().await, None);
    let first = harness.now();
    harness.engine.authenticate(&secret).await.unwrap();
    assert_eq!(last_used().await, Some(first));
    harness.advance(Duration::from_millis(59_999));
    harness.engine.authenticate(&secret).await.unwrap();
    assert_eq!(last_used().await, Some(first));
    harness.advance(Duration::from_millis(1));
    harness.engine.authenticate(&secret).await.unwrap();
    assert_eq!(last_used().await, Some(harness.now()));
}

/// The whole content of the database, as bytes or as text.
fn dump(database: &TestDatabase) -> Vec<u8> {
    match database {
        TestDatabase::File(dir) => {
            let files = std::fs::read_dir(dir.path()).unwrap();
            files
                .flat_map(|file| std::fs::read(file.unwrap().path()).unwrap())
                .collect()
        }
        TestDatabase::Server(_) => {
            let tables =
                database.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public'");
            let rows = |table: &str| format!("SELECT t::text FROM {table} AS t;");
            let all: String = tables.unwrap().lines().map(rows).collect();
            database.sql(&all).unwrap().into_bytes()
        }
    }
}

async fn stores_only_the_hash_of_a_token(harness: &Harness) {
    let created = harness
        .engine
        .create_token(&harness.me, "secret", Role::Owner, None)
        .await;
    let (secret, token) = created.unwrap();
    let caller = harness.engine.authenticate(&secret).await.unwrap();
    harness.create_for(&caller, harness.draft(1)).await;
    let stored = dump(&harness.database);
    let contains = |text: &str| {
        stored
            .windows(text.len())
            .any(|window| window == text.as_bytes())
    };
    assert!(contains(&token.prefix), "the prefix is stored");
    assert!(!contains(&secret), "the secret is stored");
    assert!(!contains(&secret[4..]), "the secret is stored");
    assert!(!contains(&secret[12..]), "the secret is stored");
}

async fn logs_creation_and_revocation_of_tokens(harness: &Harness) {
    harness
        .engine
        .create_token(&harness.me, "t", Role::Agent, None)
        .await
        .unwrap();
    harness.advance(Duration::from_millis(1));
    harness.engine.revoke_token(&harness.me, "t").await.unwrap();
    let log = harness.engine.tenant_log(&harness.me, 9).await.unwrap();
    let actions: Vec<&str> = log.iter().map(|line| line.action.as_str()).collect();
    assert_eq!(actions, ["token_revoked", "token_created"]);
    assert_eq!(log[0].details["role"], "agent");
}

async fn lists_holders_of_valid_tokens_and_users_of_the_identity_provider(harness: &Harness) {
    let engine = &harness.engine;
    for name in ["ann", "revoked"] {
        let created = engine.create_token(&harness.me, name, Role::Member, None);
        created.await.unwrap();
    }
    let soon = harness.now().checked_add(Duration::from_secs(60));
    let expiring = engine.create_token(&harness.me, "expiring", Role::Agent, soon);
    expiring.await.unwrap();
    engine.revoke_token(&harness.me, "revoked").await.unwrap();
    harness.advance(Duration::from_secs(61));
    let mut bob = harness.me.clone();
    bob.name = "user:bob".to_owned();
    bob.role = Role::Admin;
    engine.record_sign_in(&bob).await.unwrap();
    harness.advance(Duration::from_secs(1));
    bob.role = Role::Viewer;
    engine.record_sign_in(&bob).await.unwrap();
    let last = harness.now();
    let members = engine.members(&harness.me).await.unwrap();
    let listed: Vec<_> = members
        .iter()
        .map(|member| (member.name.as_str(), member.role, member.sign_in_method))
        .collect();
    assert_eq!(
        listed,
        [
            ("token:ann", Role::Member, SignInMethod::Token),
            ("user:bob", Role::Viewer, SignInMethod::Provider),
        ],
        "no revoked or expired tokens; the role of the last sign-in"
    );
    assert_eq!(members[0].last_seen_at, None);
    assert_eq!(members[1].last_seen_at, Some(last));
    let other = harness.create_tenant("members").await;
    assert_eq!(engine.members(&other).await.unwrap(), []);
}

async fn a_sign_out_counts_for_its_session_and_tenant_until_the_session_expires(harness: &Harness) {
    let engine = &harness.engine;
    let tenant = &harness.me.tenant;
    let other = harness.create_tenant("sign-outs").await;
    let hour = Duration::from_secs(3_600);
    let expires_at = harness.now().checked_add(hour).unwrap();
    for _ in 0..2 {
        let signed_out = engine.sign_out(&harness.me, "one", expires_at).await;
        signed_out.unwrap();
    }
    assert!(engine.is_signed_out(tenant, "one").await.unwrap());
    assert!(!engine.is_signed_out(tenant, "two").await.unwrap());
    assert!(!engine.is_signed_out(&other.tenant, "one").await.unwrap());
    // The next sign-out deletes expired ones, whose sessions are rejected anyway.
    harness.advance(hour);
    let later = harness.now().checked_add(hour).unwrap();
    engine.sign_out(&harness.me, "two", later).await.unwrap();
    assert!(!engine.is_signed_out(tenant, "one").await.unwrap());
    assert!(engine.is_signed_out(tenant, "two").await.unwrap());
}

on_both_databases![
    lists_holders_of_valid_tokens_and_users_of_the_identity_provider,
    a_token_authenticates_with_its_role,
    rejects_unknown_expired_and_revoked_tokens_with_the_same_error,
    revokes_a_token_by_name_id_or_prefix_once,
    rejects_revoking_an_ambiguous_name,
    rejects_invalid_names_and_expiry_times,
    records_the_last_use_at_most_once_a_minute,
    logs_creation_and_revocation_of_tokens,
    a_sign_out_counts_for_its_session_and_tenant_until_the_session_expires,
];

/// Reads the whole database.
mod exclusive {
    use super::stores_only_the_hash_of_a_token;
    crate::on_both_databases![exclusive: stores_only_the_hash_of_a_token];
}
