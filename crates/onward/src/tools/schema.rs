//! JSON Schemas of what tools take and answer, as few words as they can be: every word of an input
//! schema is paid for by every agent in every session.
//!
//! Nothing refers to anything else, so that a client needs no resolver. What says nothing to anybody
//! is left out: titles that repeat a name of ours, `format: uint32` (of which clients warn), `null`
//! beside every optional field.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// What a tool takes.
pub(super) fn of_input<T: JsonSchema>() -> Map<String, Value> {
    let mut schema = made::<T>(SchemaSettings::draft2020_12());
    trim(&mut schema);
    // Said once, at the top: that a misspelt field is refused holds everywhere.
    schema.insert("additionalProperties".to_owned(), false.into());
    // Some clients take no object without them.
    schema
        .entry("properties")
        .or_insert_with(|| Map::new().into());
    schema
}

/// What a tool answers.
pub(super) fn of_output<T: JsonSchema>() -> Map<String, Value> {
    let mut schema = made::<T>(SchemaSettings::draft2020_12().for_serialize());
    // One of several shapes is an object all the same, and clients insist on the word.
    schema.insert("type".to_owned(), "object".into());
    schema
}

fn made<T: JsonSchema>(mut settings: SchemaSettings) -> Map<String, Value> {
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut schema = object(schema.to_value());
    plain(&mut schema);
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

/// Without what is there for Rust alone.
fn plain(schema: &mut Map<String, Value>) {
    schema.remove("title");
    schema.remove("format");
    // `true` and `{}` say the same, and clients refuse a field whose schema is no object.
    if let Some(Value::Object(fields)) = schema.get_mut("properties") {
        for field in fields.values_mut().filter(|field| **field == true) {
            *field = Map::new().into();
        }
    }
    each(schema, plain);
}

/// Without what an input needs no words for.
fn trim(schema: &mut Map<String, Value>) {
    schema.remove("default");
    schema.remove("additionalProperties");
    // That a number has no sign goes without saying where nothing else is said about it.
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
    if let Some(Value::Array(words)) = schema.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    if let Some(Value::Array(mut any)) = schema.remove("anyOf") {
        any.retain(|one| one.get("type").is_none_or(|kind| kind != "null"));
        match <[Value; 1]>::try_from(any) {
            Ok([only]) => object(only).into_iter().for_each(|(word, value)| {
                schema.entry(word).or_insert(value);
            }),
            Err(any) => {
                schema.insert("anyOf".to_owned(), any.into());
            }
        }
        return trim(schema);
    }
    each(schema, trim);
}

/// Every schema right inside this one.
fn each(schema: &mut Map<String, Value>, visit: fn(&mut Map<String, Value>)) {
    for (word, part) in schema {
        match (word.as_str(), part) {
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
