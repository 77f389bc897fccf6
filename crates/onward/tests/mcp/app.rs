//! MCP Apps: the document, its tool, and clients that do not declare the extension.
//! `tests/browser/app.test.mjs` runs the document in a host.

use onward_testbed::mcp_client::{Client, ERAS, Era};
use serde_json::{Map, Value, json};

use crate::fixtures;
use crate::program;

const URI: &str = "ui://onward/plan";
const TOOL: &str = "render_plan";

/// The capabilities of a client that displays documents of this type.
fn with_apps(mime_type: &str) -> Value {
    json!({ "extensions": { "io.modelcontextprotocol/ui": { "mimeTypes": [mime_type] } } })
}

const HTML: &str = "text/html;profile=mcp-app";

/// Whether the model may see a tool.
fn is_for_models(tool: &Map<String, Value>) -> bool {
    let visibility = tool.get("_meta").map(|meta| &meta["ui"]["visibility"]);
    visibility.is_none_or(|visibility| visibility.is_null())
}

#[test]
fn a_client_without_the_extension_sees_nothing_new() {
    let unsupported = [
        json!({}),
        with_apps("text/html"),
        json!({ "extensions": { "io.modelcontextprotocol/ui": {} } }),
    ];
    for (era, capabilities) in ERAS
        .into_iter()
        .flat_map(|era| unsupported.clone().map(|capabilities| (era, capabilities)))
    {
        let dir = program();
        let mut client = Client::with_options(&dir, era, &[], capabilities);
        let plan = fixtures::create_plan(&mut client, 1);
        for tool in client.tools() {
            assert!(!tool.contains_key("_meta"), "{tool:?}");
            assert_ne!(tool["name"], TOOL);
        }
        let resources = client.request("resources/list", json!({}));
        assert!(!resources.to_string().contains("ui://"), "{resources}");
        let read = client.request("resources/read", json!({ "uri": URI }));
        assert!(read["error"].is_object(), "{read}");
        let call = json!({ "name": TOOL, "arguments": { "planId": plan } });
        let call = client.request("tools/call", call);
        assert_eq!(call["error"]["code"], -32602, "{call}");
        if era == Era::Stateless {
            let info = client.request("server/discover", json!({}));
            let capabilities = &info["result"]["capabilities"];
            assert!(capabilities.get("extensions").is_none_or(|extensions| {
                extensions.get("io.modelcontextprotocol/ui").is_none()
            }));
        }
    }
}

#[test]
fn the_tools_for_models_differ_only_in_their_metadata() {
    for tool_set in ["all", "core", "plan"] {
        let dir = program();
        let options = ["--tools", tool_set];
        let mut plain = Client::with_options(&dir, Era::Stateless, &options, json!({}));
        let mut client = Client::with_options(&dir, Era::Stateless, &options, with_apps(HTML));
        let listed = client.request("tools/list", json!({}));
        assert_eq!(listed["result"]["cacheScope"], "private");
        let tools = client.tools();
        let displayed: Vec<_> = tools
            .iter()
            .filter(|tool| is_for_models(tool) && tool.contains_key("_meta"))
            .map(|tool| {
                assert_eq!(tool["_meta"]["ui"]["resourceUri"], URI);
                tool["name"].as_str().unwrap()
            })
            .collect();
        assert_eq!(displayed, ["get_plan_status", "request_user_review"]);
        let (for_models, for_apps): (Vec<_>, Vec<_>) =
            tools.iter().cloned().partition(is_for_models);
        assert_eq!(for_apps.len(), 1);
        assert_eq!(for_apps[0]["name"], TOOL);
        assert_eq!(for_apps[0]["_meta"]["ui"]["visibility"], json!(["app"]));
        assert_eq!(for_apps[0]["annotations"]["readOnlyHint"], true);
        let without_metadata = for_models.into_iter().map(|mut tool| {
            tool.remove("_meta");
            tool
        });
        assert_eq!(without_metadata.collect::<Vec<_>>(), plain.tools());
    }
}

#[test]
fn the_document_needs_no_network() {
    for era in ERAS {
        let dir = program();
        let mut client = Client::with_options(&dir, era, &[], with_apps(HTML));
        let read = client.request("resources/read", json!({ "uri": URI }));
        let document = &read["result"]["contents"][0];
        assert_eq!(document["uri"], URI);
        assert_eq!(document["mimeType"], HTML);
        let csp = json!({ "connectDomains": [], "resourceDomains": [] });
        assert_eq!(document["_meta"]["ui"]["csp"], csp);
        let html = document["text"].as_str().expect("HTML");
        assert!(html.starts_with("<!doctype html>"));
        // An asset that contains its end tag would end early.
        assert_eq!(html.matches("</script").count(), 1);
        assert_eq!(html.matches("</style").count(), 2);
        for reference in [" src=", "<link", "@import", "url("] {
            assert!(!html.contains(reference), "{reference}");
        }
    }
}

/// The structured result of the tool.
fn render(client: &mut Client, arguments: Value) -> Value {
    let id = client.send_call(TOOL, arguments);
    let response = client.response_to(id);
    assert_ne!(response["result"]["isError"], true, "{response}");
    response["result"]["structuredContent"].clone()
}

#[test]
fn a_plan_is_rendered_once_per_version() {
    for era in ERAS {
        let dir = program();
        let mut client = Client::with_options(&dir, era, &[], with_apps(HTML));
        let plan = fixtures::create_plan(&mut client, 2);
        let (step, _) = fixtures::claim_step(&mut client, &plan);
        let rendered = render(&mut client, json!({ "planId": plan }));
        let html = rendered["html"].as_str().expect("HTML");
        assert!(html.contains(&format!("step-{step}")), "{html}");
        assert_eq!(rendered["hasEnded"], false);
        // Without a dashboard, links have no base.
        assert!(!html.contains("data-base"));
        let of_step = render(&mut client, json!({ "stepId": step }));
        let of_step = of_step["html"].as_str().expect("HTML");
        assert!(of_step.contains(&plan), "{of_step}");
        let review = json!({ "stepId": step, "summary": "Two remain" });
        client.call("request_user_review", review);
        let changed = json!({ "planId": plan, "version": rendered["version"] });
        let changed = render(&mut client, changed);
        let html = changed["html"].as_str().expect("HTML");
        assert!(html.contains(&format!("data-step=\"{step}\"")), "{html}");
        client.call(
            "submit_user_decision",
            json!({ "stepId": step, "decision": "reject" }),
        );
        let ended = render(&mut client, json!({ "planId": plan, "decision": "reject" }));
        assert_eq!(ended["hasEnded"], true);
        assert!(
            ended["html"]
                .as_str()
                .is_some_and(|html| html.contains("class=\"flash\""))
        );
        // The times of a finished plan change once per minute.
        let first = render(&mut client, json!({ "planId": plan }));
        let again = json!({ "planId": plan, "version": first["version"] });
        let again = render(&mut client, again);
        assert!(
            again.get("html").is_none() || again["version"] != first["version"],
            "{again}"
        );
    }
}

#[test]
fn invalid_arguments_of_the_app_are_errors_of_the_tool() {
    let dir = program();
    let mut client = Client::with_options(&dir, Era::Stateless, &[], with_apps(HTML));
    for (arguments, code) in [
        (json!({}), "invalid_input"),
        (json!({ "planId": 1 }), "invalid_input"),
        (json!({ "planId": "x" }), "plan_not_found"),
        (json!({ "stepId": "x" }), "step_not_found"),
    ] {
        assert_eq!(client.call_rejected(TOOL, arguments).code, code);
    }
}
