//! The description of the API: whole, true, and about nothing else.

use reqwest::Method;
use serde_json::Value;

use crate::basics::plan;
use crate::house::{House, send};
use crate::routes::samples;

/// Every `$ref` in a document.
fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                match (name.as_str(), value) {
                    ("$ref", Value::String(to)) => found.push(to),
                    (_, value) => references(value, found),
                }
            }
        }
        Value::Array(all) => all.iter().for_each(|one| references(one, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[tokio::test]
async fn it_is_whole_and_every_schema_is_one() {
    let server = House::new("openapi").serve();
    let document = server.get("/api/v1/openapi.json").await.done();
    assert_eq!(document["openapi"], "3.1.1");
    assert_eq!(document["servers"][0]["url"], "/api/v1");
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(!found.is_empty());
    for reference in found {
        let pointer = reference.strip_prefix('#').expect("within the document");
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    let mut names = Vec::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for operation in methods.as_object().expect("methods").values() {
            names.push(operation["operationId"].as_str().expect("a name"));
            let parameters = operation["parameters"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let in_path = parameters
                .iter()
                .filter(|parameter| parameter["in"] == "path");
            assert_eq!(in_path.count(), path.matches('{').count(), "{path}");
            let mut schemas: Vec<&Value> = parameters
                .iter()
                .map(|parameter| &parameter["schema"])
                .collect();
            schemas.extend(operation.pointer("/requestBody/content/application~1json/schema"));
            for response in operation["responses"]
                .as_object()
                .expect("responses")
                .values()
            {
                schemas.extend(response.pointer("/content/application~1json/schema"));
            }
            assert!(operation["responses"]["default"].is_object());
            for schema in schemas {
                assert!(
                    jsonschema::draft202012::meta::is_valid(schema),
                    "{path}: {schema}"
                );
            }
        }
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "each operation has a name of its own");
}

#[tokio::test]
async fn what_it_describes_is_there_and_nothing_else_is() {
    let server = House::new("openapi-routes").serve();
    let document = server.get("/api/v1/openapi.json").await.done();
    let methods = [
        Method::GET,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
    ];
    for (path, described) in document["paths"].as_object().expect("paths") {
        for method in &methods {
            let is_described = described.get(method.as_str().to_lowercase()).is_some();
            let path = path.replace(['{', '}'], "");
            let asked = server
                .ask(method.clone(), &format!("/api/v1{path}"))
                .send()
                .await;
            let status = asked.expect("it answers").status().as_u16();
            assert_eq!(status != 405, is_described, "{method} {path}: {status}");
        }
    }
}

#[tokio::test]
async fn answers_have_the_form_that_it_describes() {
    let server = House::new("openapi-answers").serve();
    let document = server.get("/api/v1/openapi.json").await.done();
    let problem = jsonschema::draft202012::new(&document["components"]["schemas"]["Problem"]);
    let problem = problem.expect("a schema");
    let made = server.post("/api/v1/plans", plan()).await.done();
    let spare = server
        .post(
            "/api/v1/tokens",
            serde_json::json!({ "name": "spare", "role": "viewer" }),
        )
        .await
        .done();
    let ids = (
        made["planId"].as_str().expect("an id"),
        made["firstStep"]["stepId"].as_str().expect("an id"),
        spare["tokenId"].as_str().expect("an id"),
    );
    let mut done = 0;
    for sample in samples(&server, None, ids).await {
        let answer = sample.send(&server, None).await;
        if !answer.status.is_success() {
            assert!(problem.is_valid(&answer.json()), "{sample:?}: {answer:?}");
            continue;
        }
        let described = document["paths"].as_object().expect("paths").values();
        let described = described
            .flat_map(|methods| methods.as_object().expect("methods").values())
            .find(|operation| operation["operationId"] == sample.operation)
            .expect("it is described");
        let response = &described["responses"][answer.status.as_str()];
        let schema = &response["content"]["application/json"]["schema"];
        assert!(
            schema.is_object(),
            "{sample:?}: {} is not described",
            answer.status
        );
        let schema = jsonschema::draft202012::new(schema).expect("a schema");
        let json = answer.json();
        let wrong: Vec<String> = schema
            .iter_errors(&json)
            .map(|error| error.to_string())
            .collect();
        assert_eq!(wrong, [""; 0], "{sample:?}: {json}");
        done += 1;
    }
    assert!(done >= 14, "{done}");
    let nothing = send(server.ask(Method::GET, "/nothing")).await;
    assert!(problem.is_valid(&nothing.json()));
}
