//! `/api/v1/openapi.json`: the API description, generated from the routes and the tool schemas.
//!
//! OpenAPI 3.1 uses JSON Schema, so tool schemas are included unchanged, except that path and query
//! parameters are moved out of the body schema.

use axum::Json;
use axum::response::{IntoResponse, Response};
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::routes::{BASE, EXPORT, ROUTES, Route, Verb};
use crate::tools::Tool;
use crate::web::problem::{self, MEDIA_TYPE};

pub(super) async fn show() -> Response {
    Json(document()).into_response()
}

fn document() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in &ROUTES {
        if let Some(tool) = route.tool() {
            add(
                &mut paths,
                route.path,
                method(route.method),
                operation(route, tool),
            );
        }
    }
    add(&mut paths, "/events", "get", events());
    add(&mut paths, "/openapi.json", "get", describe());
    add(&mut paths, EXPORT, "get", export());
    json!({
        "openapi": "3.1.1",
        "info": {
            "title": "Onward",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Durable plans for AI agents, with stall detection. \
                The same operations as the MCP tools at `/mcp`.",
        },
        "servers": [{ "url": BASE }],
        "security": [{ "token": [] }, {}],
        "paths": paths,
        "components": {
            "schemas": { "Problem": problem_schema() },
            "responses": {
                "Problem": {
                    "description": "Error, with the next action in `hint`",
                    "content": content(MEDIA_TYPE, json!({ "$ref": "#/components/schemas/Problem" })),
                },
            },
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token from `onward token create` or from the identity provider. \
                        On loopback no token is required unless the server is configured to require one.",
                },
            },
        },
    })
}

fn add(paths: &mut Map<String, Value>, path: &str, method: &str, operation: Value) {
    let item = paths.entry(path).or_insert_with(|| json!({}));
    if let Value::Object(item) = item {
        item.insert(method.to_owned(), operation);
    }
}

fn method(verb: Verb) -> &'static str {
    match verb {
        Verb::Get => "get",
        Verb::Post | Verb::Create => "post",
        Verb::Delete => "delete",
    }
}

fn operation(route: &Route, tool: &Tool) -> Value {
    let mut input = (**tool.input_schema()).clone();
    let mut parameters = Vec::new();
    for name in path_parameters(route.path) {
        let field = remove_field(&mut input, name);
        let schema = field.map_or_else(|| json!({}), |(schema, _)| schema);
        parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": schema }));
    }
    let mut operation = json!({
        "operationId": tool.name,
        "summary": tool.title,
        "description": tool.description,
        "responses": {
            route.method.status().as_str(): {
                "description": "Success",
                "content": content("application/json", Value::Object((**tool.output_schema()).clone())),
            },
            "default": { "$ref": "#/components/responses/Problem" },
        },
    });
    if route.method.has_body() {
        let required = input.get("required").is_some();
        operation["requestBody"] = json!({
            "required": required,
            "content": content("application/json", Value::Object(input)),
        });
    } else {
        for name in fields(&input) {
            if let Some((mut schema, required)) = remove_field(&mut input, &name) {
                let description = schema
                    .as_object_mut()
                    .and_then(|schema| schema.remove("description"));
                let mut parameter =
                    json!({ "name": name, "in": "query", "required": required, "schema": schema });
                if let Some(description) = description {
                    parameter["description"] = description;
                }
                parameters.push(parameter);
            }
        }
    }
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    operation
}

fn events() -> Value {
    json!({
        "operationId": "listen",
        "summary": "Stream change events",
        "description": "Server-sent events. The first event is `ready`. Then `plan_changed` with `{\"planId\"}` \
            for every changed plan of the tenant, `session_changed` with `{\"sessionId\"}` \
            for every session with a changed turn, response or call, and `missed` if \
            events were lost and the client must reload all data.",
        "responses": {
            "200": {
                "description": "Event stream; stays open until the client disconnects",
                "content": content("text/event-stream", json!({ "type": "string" })),
            },
            "default": { "$ref": "#/components/responses/Problem" },
        },
    })
}

fn export() -> Value {
    json!({
        "operationId": "export_plan",
        "summary": "Export a plan",
        "description": "The complete plan with its audit trail, as a document for `onward import`.",
        "parameters": [
            { "name": "planId", "in": "path", "required": true, "schema": { "type": "string" } },
        ],
        "responses": {
            "200": {
                "description": "Success",
                "content": content("application/json", json!({ "type": "object" })),
            },
            "default": { "$ref": "#/components/responses/Problem" },
        },
    })
}

fn describe() -> Value {
    json!({
        "operationId": "describe",
        "summary": "Describe the API",
        "responses": {
            "200": {
                "description": "This document",
                "content": content("application/json", json!({ "type": "object" })),
            },
            "default": { "$ref": "#/components/responses/Problem" },
        },
    })
}

fn content(kind: &str, schema: Value) -> Value {
    json!({ kind: { "schema": schema } })
}

/// The names in braces.
fn path_parameters(path: &str) -> impl Iterator<Item = &str> {
    path.split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn fields(schema: &Map<String, Value>) -> Vec<String> {
    let fields = schema.get("properties").and_then(Value::as_object);
    fields.into_iter().flat_map(Map::keys).cloned().collect()
}

/// Removes a field from a schema. Returns its schema and whether it is required.
fn remove_field(schema: &mut Map<String, Value>, name: &str) -> Option<(Value, bool)> {
    let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
    let field = fields.and_then(|fields| fields.remove(name))?;
    let mut required = false;
    if let Some(Value::Array(names)) = schema.get_mut("required") {
        let all = names.len();
        names.retain(|required| required != name);
        required = names.len() < all;
        if names.is_empty() {
            schema.remove("required");
        }
    }
    Some((field, required))
}

fn problem_schema() -> Value {
    let mut settings = SchemaSettings::draft2020_12().for_serialize();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let schema = settings
        .into_generator()
        .into_root_schema_for::<problem::ProblemBody>();
    let mut schema = schema.to_value();
    let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
    for field in fields.into_iter().flat_map(Map::values_mut) {
        if let Some(field) = field.as_object_mut() {
            // Generators warn about the unknown format `uint16`.
            field.remove("format");
        }
    }
    schema
}
