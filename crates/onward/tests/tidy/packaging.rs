//! Files of packages: one version, one name in the MCP registry, working links, existing metrics.

use std::collections::BTreeSet;

use base64::Engine as _;
use serde_json::{Value, json};

use crate::tree::root;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const SERVER: &str = "packaging/mcp/server.json";

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).expect(path)
}

fn read_json(path: &str) -> Value {
    serde_json::from_str(&read(path)).expect(path)
}

fn server_name() -> String {
    let server = read_json(SERVER);
    server["name"].as_str().expect("a name").to_owned()
}

#[test]
fn every_package_has_the_version_of_the_workspace() {
    let server = read_json(SERVER);
    let mut found = vec![
        (SERVER, server["version"].clone()),
        (
            "npm",
            read_json("packaging/npm/package.json")["version"].clone(),
        ),
        (
            "mcpb",
            read_json("packaging/mcp/manifest.json")["version"].clone(),
        ),
    ];
    for package in server["packages"].as_array().expect("packages") {
        let identifier = package["identifier"].as_str().expect("an identifier");
        let version = match identifier.rsplit_once(':') {
            Some((_, tag)) => json!(tag),
            None => package["version"].clone(),
        };
        found.push((SERVER, version));
    }
    let chart = read("packaging/helm/onward/Chart.yaml");
    for key in ["version: ", "appVersion: "] {
        let line = chart.lines().find_map(|line| line.strip_prefix(key));
        found.push(("Chart.yaml", json!(line)));
    }
    let compose = read("packaging/container/compose.yaml");
    let image = compose
        .lines()
        .find_map(|line| line.trim().strip_prefix("image: ghcr.io/"));
    let tag = image.and_then(|image| image.rsplit_once(':'));
    found.push(("compose.yaml", json!(tag.map(|(_, tag)| tag))));
    let workspace: toml::Table = read("Cargo.toml").parse().expect("valid TOML");
    for name in ["onward-core", "onward-store", "onward-engine"] {
        let dependency = &workspace["workspace"]["dependencies"][name];
        found.push(("Cargo.toml", json!(dependency["version"].as_str())));
    }
    for (file, version) in found {
        assert_eq!(version, VERSION, "{file}");
    }
    let changelog = read("CHANGELOG.md");
    assert!(
        changelog
            .lines()
            .any(|line| line.starts_with(&format!("## {VERSION} ("))),
        "the changelog has no section for {VERSION}"
    );
}

#[test]
fn the_registry_entry_follows_the_rules_of_the_mcp_registry() {
    let server = read_json(SERVER);
    assert_eq!(
        server["$schema"],
        "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
    );
    for file in [
        SERVER,
        "packaging/mcp/manifest.json",
        "packaging/npm/package.json",
    ] {
        let description = &read_json(file)["description"];
        let length = description.as_str().expect("a description").chars().count();
        assert!(length <= 100, "{file}: {length} characters");
    }
    for package in server["packages"].as_array().expect("packages") {
        assert_eq!(package["transport"]["type"], "stdio");
        assert_eq!(package["packageArguments"][0]["value"], "mcp");
    }
}

/// The registry accepts a package only if it contains the name of the server.
#[test]
fn every_package_contains_the_name_of_the_server() {
    let name = server_name();
    assert_eq!(read_json("packaging/npm/package.json")["mcpName"], name);
    assert!(read("packaging/python/README.md").contains(&format!("<!-- mcp-name: {name} -->")));
    let label = format!("io.modelcontextprotocol.server.name=\"{name}\"");
    assert!(read("packaging/container/Dockerfile").contains(&label));
}

/// The part of the README after a prefix, up to the end of the link.
fn link_value(readme: &str, prefix: &str) -> String {
    let (_, rest) = readme.split_once(prefix).expect("the link exists");
    rest.split([')', '&']).next().expect("a value").to_owned()
}

#[test]
fn links_of_the_readme_register_the_server() {
    let readme = read("README.md");
    let server = json!({ "command": "npx", "args": ["-y", "onward", "mcp"] });
    let cursor = link_value(
        &readme,
        "https://cursor.com/install-mcp?name=onward&config=",
    );
    let cursor = base64::engine::general_purpose::STANDARD
        .decode(cursor)
        .expect("base64");
    assert_eq!(
        serde_json::from_slice::<Value>(&cursor).expect("JSON"),
        server
    );
    let code = link_value(
        &readme,
        "https://vscode.dev/redirect/mcp/install?name=onward&config=",
    );
    let code = percent_encoding::percent_decode_str(&code)
        .decode_utf8()
        .expect("UTF-8");
    assert_eq!(serde_json::from_str::<Value>(&code).expect("JSON"), server);
}

/// Names of metrics in a text.
fn metrics(text: &str) -> BTreeSet<String> {
    let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
    text.split(|c| !is_name(c))
        .filter(|word| word.starts_with("onward_"))
        .map(|word| word.trim_end_matches("_bucket").to_owned())
        .collect()
}

#[test]
fn the_grafana_dashboard_shows_every_documented_metric_and_no_other() {
    let shown = metrics(&read("packaging/grafana/onward.json"));
    let server = read("docs/serve.md");
    let documented: BTreeSet<String> = metrics(&server)
        .into_iter()
        .filter(|name| name != "onward_sweep_")
        .collect();
    assert!(documented.len() > 8, "{documented:?}");
    assert_eq!(documented.difference(&shown).collect::<Vec<_>>(), [""; 0]);
    let source = read("crates/onward/src/web/metrics.rs");
    let exported = metrics(&source);
    assert_eq!(shown.difference(&exported).collect::<Vec<_>>(), [""; 0]);
}
