//! The OpenAPI document: complete, valid, and in agreement with the routes and responses.

use onward_testbed::send;
use reqwest::Method;
use serde_json::Value;

use crate::program;
use crate::routes::samples;
use crate::world::Ids;

/// Collects every `$ref` in a document.
fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                match (name.as_str(), value) {
                    ("$ref", Value::String(target)) => found.push(target),
                    (_, value) => references(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[tokio::test]
async fn the_document_and_its_schemas_are_valid() {
    let server = program("openapi").serve();
    let document = server.get("/api/v1/openapi.json").await.expect_success();
    assert_eq!(document["openapi"], "3.1.1");
    assert_eq!(document["servers"][0]["url"], "/api/v1");
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(!found.is_empty());
    for reference in found {
        let pointer = reference.strip_prefix('#').expect("reference is local");
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    let (mut names, mut summaries) = (Vec::new(), Vec::new());
    for (path, methods) in document["paths"].as_object().expect("document has paths") {
        for operation in methods.as_object().expect("path has methods").values() {
            names.push(
                operation["operationId"]
                    .as_str()
                    .expect("operation has an id"),
            );
            summaries.push(
                operation["summary"]
                    .as_str()
                    .expect("operation has a summary"),
            );
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
                .expect("operation has responses")
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
    for mut all in [names, summaries] {
        all.sort_unstable();
        let repeated: Vec<_> = all.windows(2).filter(|two| two[0] == two[1]).collect();
        assert!(repeated.is_empty(), "{repeated:?}");
    }
}

#[tokio::test]
async fn documents_exactly_the_existing_routes() {
    let server = program("openapi-routes").serve();
    let document = server.get("/api/v1/openapi.json").await.expect_success();
    let methods = [
        Method::GET,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
    ];
    for (path, documented) in document["paths"].as_object().expect("document has paths") {
        for method in &methods {
            let is_documented = documented.get(method.as_str().to_lowercase()).is_some();
            let path = path.replace(['{', '}'], "");
            let response = server
                .request(method.clone(), &format!("/api/v1{path}"))
                .send()
                .await;
            let status = response.expect("response received").status().as_u16();
            assert_eq!(status != 405, is_documented, "{method} {path}: {status}");
        }
    }
}

#[tokio::test]
async fn responses_match_their_schemas() {
    let server = program("openapi-responses").serve();
    let document = server.get("/api/v1/openapi.json").await.expect_success();
    let problem = jsonschema::draft202012::new(&document["components"]["schemas"]["Problem"]);
    let problem = problem.expect("valid schema");
    let ids = Ids::create(&server, None, "tides", 1).await;
    let mut successes = 0;
    for sample in samples(&server, None, &ids).await {
        let response = sample.send(&server, None).await;
        if !response.status.is_success() {
            assert!(
                problem.is_valid(&response.json()),
                "{sample:?}: {response:?}"
            );
            continue;
        }
        let operations = document["paths"]
            .as_object()
            .expect("document has paths")
            .values();
        let operation = operations
            .flat_map(|methods| methods.as_object().expect("path has methods").values())
            .find(|operation| operation["operationId"] == sample.operation)
            .expect("operation is documented");
        let documented = &operation["responses"][response.status.as_str()];
        let schema = &documented["content"]["application/json"]["schema"];
        assert!(
            schema.is_object(),
            "{sample:?}: {} is not documented",
            response.status
        );
        let schema = jsonschema::draft202012::new(schema).expect("valid schema");
        let json = response.json();
        let errors: Vec<String> = schema
            .iter_errors(&json)
            .map(|error| error.to_string())
            .collect();
        assert_eq!(errors, [""; 0], "{sample:?}: {json}");
        successes += 1;
    }
    assert!(successes >= 14, "{successes}");
    let missing = send(server.request(Method::GET, "/missing")).await;
    assert!(problem.is_valid(&missing.json()));
}
