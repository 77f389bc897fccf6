//! Discovery before a connection: the catalog at the well-known location and the server card.

use serde_json::{Value, json};

use crate::program;

#[tokio::test]
async fn the_catalog_leads_to_the_card_and_the_card_to_the_endpoint() {
    for tokens in [false, true] {
        let config = format!("[access]\nrequire_tokens = {tokens}");
        let server = program("discovery").with_config(&config).serve();
        let catalog = server.get("/.well-known/ai-catalog.json").await;
        assert_eq!(
            catalog.header("content-type"),
            "application/ai-catalog+json"
        );
        let catalog = catalog.expect_success();
        let entry = &catalog["entries"][0];
        assert_eq!(entry["type"], "application/mcp-server-card+json");
        assert_eq!(entry["identifier"], "urn:air:127.0.0.1:mcp:onward");
        let path = entry["url"].as_str().expect("URL");
        let path = path.strip_prefix(&server.url).expect("URL of this server");
        let card = server.get(path).await;
        assert_eq!(
            card.header("content-type"),
            "application/mcp-server-card+json"
        );
        assert_eq!(card.header("cache-control"), "public, max-age=3600");
        let card = card.expect_success();
        let text = |name: &str| card[name].as_str().expect("text");
        assert_eq!(text("version"), env!("CARGO_PKG_VERSION"));
        assert_eq!(text("name").split('/').count(), 2);
        assert!((1..=100).contains(&text("description").chars().count()));
        assert!(text("$schema").ends_with("/v1/server-card.schema.json"));
        let remote = &card["remotes"][0];
        assert_eq!(remote["type"], "streamable-http");
        assert_eq!(remote["url"], format!("{}/mcp", server.url));
        let versions = remote["supportedProtocolVersions"].as_array();
        assert!(versions.expect("versions").contains(&json!("2026-07-28")));
        // A client learns that it needs a token.
        let header = if tokens {
            json!("Authorization")
        } else {
            Value::Null
        };
        assert_eq!(remote["headers"][0]["name"], header);
    }
}
