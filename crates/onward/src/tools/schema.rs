//! JSON Schemas of tool inputs and outputs, kept short: agents pay for the input schemas in every
//! session.
//!
//! Subschemas are inlined, so clients need no `$ref` resolver. Removed are titles (Rust type
//! names), `format: uint32` (some clients warn about it) and `null` as the type of an optional
//! field.

use onward_engine::context::MAX_CHARS;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::Spec;
use crate::wire::notice;

/// The field that limits the size of a response.
pub(super) const MAX_CHARS_FIELD: &str = "maxChars";

/// The schema of all accepted arguments, including `maxChars`.
pub(super) fn input_schema<T: JsonSchema>() -> Map<String, Value> {
    let mut schema = own_schema::<T>();
    let field = json!({ "type": "integer", "minimum": 1, "maximum": MAX_CHARS });
    if let Some(Value::Object(fields)) = schema.get_mut("properties") {
        fields.entry(MAX_CHARS_FIELD).or_insert(field);
    }
    schema
}

/// The fields of the tool, without those that every tool has.
pub(super) fn own_schema<T: JsonSchema>() -> Map<String, Value> {
    let mut schema = generate::<T>(SchemaSettings::draft2020_12());
    trim(&mut schema);
    // Only at the top level, to save tokens. Unknown fields are rejected at every level.
    schema.insert("additionalProperties".to_owned(), false.into());
    // Some clients reject an object schema without `properties`.
    schema
        .entry("properties")
        .or_insert_with(|| Map::new().into());
    schema
}

/// The input schema in the list of all tools: without [`Spec::UNLISTED`].
pub(super) fn listed_schema<S: Spec>() -> Map<String, Value> {
    let mut schema = Value::Object(own_schema::<S::Input>());
    remove(&mut schema, S::UNLISTED);
    object(schema)
}

/// Removes the fields at these JSON pointers.
pub(super) fn remove(schema: &mut Value, pointers: &[&str]) {
    for pointer in pointers {
        if let Some((fields, name)) = pointer.rsplit_once('/')
            && let Some(Value::Object(fields)) = schema.pointer_mut(fields)
        {
            fields.remove(name);
        }
    }
}

/// The input schema in the list of core tools. To save tokens, it has neither
/// [`Spec::UNLISTED_IN_CORE`], the details of [`Spec::REPEATED`], nor `additionalProperties`.
pub(super) fn core_schema<S: Spec>() -> Map<String, Value> {
    let mut schema = Value::Object(listed_schema::<S>());
    remove(&mut schema, S::UNLISTED_IN_CORE);
    for pointer in S::REPEATED {
        if let Some(Value::Object(field)) = schema.pointer_mut(pointer) {
            field.retain(|keyword, _| ["type", "description", "items"].contains(&keyword.as_str()));
            // Some clients reject an array schema without `items`.
            if let Some(items) = field.get_mut("items") {
                *items = json!({ "type": "object" });
            }
        }
    }
    let mut schema = object(schema);
    if !S::REQUIRED_IN_CORE.is_empty() {
        schema.insert("required".to_owned(), S::REQUIRED_IN_CORE.into());
    }
    schema.remove("additionalProperties");
    schema
}

pub(super) fn output_schema<S: Spec>() -> Map<String, Value> {
    let mut schema = generate::<S::Output>(SchemaSettings::draft2020_12().for_serialize());
    if S::HAS_NOTICE {
        notice::describe(&mut schema);
    }
    // Clients require `type: object` even beside `oneOf`.
    schema.insert("type".to_owned(), "object".into());
    // `bound` adds these to every response that is too large.
    let fields = schema
        .entry("properties")
        .or_insert_with(|| Map::new().into());
    if let Value::Object(fields) = fields {
        let truncated = json!({ "type": "boolean", "description": "Whether anything was cut" });
        let more = json!({ "type": "string", "description": "How to get what was cut" });
        fields.insert("truncated".to_owned(), truncated);
        fields.insert("more".to_owned(), more);
    }
    schema
}

fn generate<T: JsonSchema>(mut settings: SchemaSettings) -> Map<String, Value> {
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut schema = object(schema.to_value());
    simplify(&mut schema);
    schema.remove("description");
    schema
}

fn object(value: Value) -> Map<String, Value> {
    if let Value::Object(object) = value {
        object
    } else {
        Map::new()
    }
}

/// Removes keywords that only Rust needs.
fn simplify(schema: &mut Map<String, Value>) {
    schema.remove("title");
    schema.remove("format");
    // The line breaks of a doc comment are not paragraphs.
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = description.replace('\n', " ");
    }
    // `true` and `{}` are equivalent, and clients reject a field whose schema is not an object.
    if let Some(Value::Object(fields)) = schema.get_mut("properties") {
        for field in fields.values_mut().filter(|field| **field == true) {
            *field = Map::new().into();
        }
    }
    for_each_subschema(schema, simplify);
}

/// Removes keywords that an agent does not need.
fn trim(schema: &mut Map<String, Value>) {
    schema.remove("default");
    schema.remove("additionalProperties");
    // A lower bound of 0 without an upper bound only repeats that the integer is unsigned.
    if !schema.contains_key("maximum") && schema.get("minimum").is_some_and(|min| min == 0) {
        schema.remove("minimum");
    }
    if let Some(Value::Array(kinds)) = schema.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(mut any)) = schema.remove("anyOf") {
        any.retain(|schema| schema.get("type").is_none_or(|kind| kind != "null"));
        match <[Value; 1]>::try_from(any) {
            Ok([only]) => object(only).into_iter().for_each(|(keyword, value)| {
                schema.entry(keyword).or_insert(value);
            }),
            Err(any) => {
                schema.insert("anyOf".to_owned(), any.into());
            }
        }
        return trim(schema);
    }
    for_each_subschema(schema, trim);
}

fn for_each_subschema(schema: &mut Map<String, Value>, visit: fn(&mut Map<String, Value>)) {
    for (keyword, part) in schema {
        match (keyword.as_str(), part) {
            ("properties", Value::Object(fields)) => {
                for field in fields.values_mut().filter_map(Value::as_object_mut) {
                    visit(field);
                }
            }
            ("items" | "additionalProperties", Value::Object(items)) => visit(items),
            ("anyOf" | "oneOf" | "allOf", Value::Array(all)) => {
                all.iter_mut()
                    .filter_map(Value::as_object_mut)
                    .for_each(visit);
            }
            _ => {}
        }
    }
}
