//! Bounds on the work that a schema causes, computed before a validator sees it.
//!
//! A few references can expand to any size: 40 definitions that each refer to the next one twice
//! have 2⁴⁰ nodes. [`check_size`] counts the expanded nodes of a schema, [`check_validation`] the
//! steps of a validation. Both visit each schema, or each pair of schema and value, once.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::SchemaError;
use super::subschemas::{Scope, subschemas};

/// Nodes of a schema with its references expanded. A recursive reference counts as one node.
pub(crate) const MAX_NODES: u64 = 20_000;
/// Subschemas inside each other, with references expanded. Bounds the stack of the validator.
const MAX_DEPTH: usize = 250;
/// Subschemas inside each other during a validation: a recursive schema is as deep as the data.
const MAX_VALIDATION_DEPTH: usize = 2_000;
/// Pairs of schema and value that are counted, which bounds the memory of the count.
const MAX_PAIRS: usize = 250_000;
/// Bytes of a text that a pattern reads in one step.
const PATTERN_BYTES_PER_STEP: u64 = 8;
/// Steps to compare an entry with the others of a list.
const UNIQUE_STEPS: u64 = 16;

/// Rejects a schema that expands to too many or too deeply nested nodes.
pub(super) fn check_size(root: &Value) -> Result<(), SchemaError> {
    let mut size = Size {
        root,
        counted: BTreeMap::new(),
        path: BTreeSet::new(),
    };
    let nodes = size.of(root)?;
    if nodes > MAX_NODES {
        return Err(SchemaError::TooManyNodes);
    }
    Ok(())
}

struct Size<'s> {
    root: &'s Value,
    counted: BTreeMap<*const Value, u64>,
    /// The schemas that contain the current one.
    path: BTreeSet<*const Value>,
}

impl<'s> Size<'s> {
    fn of(&mut self, schema: &'s Value) -> Result<u64, SchemaError> {
        let Value::Object(keywords) = schema else {
            return Ok(1);
        };
        let here = std::ptr::from_ref(schema);
        if let Some(nodes) = self.counted.get(&here) {
            return Ok(*nodes);
        }
        if self.path.len() >= MAX_DEPTH {
            return Err(SchemaError::TooDeep);
        }
        if !self.path.insert(here) {
            return Ok(1);
        }
        let mut nodes = own_nodes(keywords);
        for (_, subschema) in subschemas(self.root, keywords) {
            nodes = nodes.saturating_add(self.of(subschema)?);
        }
        self.path.remove(&here);
        self.counted.insert(here, nodes);
        Ok(nodes)
    }
}

/// Steps of one evaluation: for its result, and for its errors.
#[derive(Clone, Copy, Default)]
struct Steps {
    result: u64,
    errors: u64,
}

impl Steps {
    fn add(&mut self, steps: Steps) {
        self.result = self.result.saturating_add(steps.result);
        self.errors = self.errors.saturating_add(steps.errors);
    }

    fn times(self, factor: u64) -> Self {
        Self {
            result: self.result.saturating_mul(factor),
            errors: self.errors.saturating_mul(factor),
        }
    }
}

/// Whether a validation of this value takes at most this number of steps.
pub(super) fn is_bounded(root: &Value, data: &Value, max_steps: u64) -> bool {
    let mut work = Validation {
        root,
        counted: BTreeMap::new(),
        depth: 0,
    };
    let steps = work.of(root, data);
    steps.is_some_and(|steps| steps.result.saturating_add(steps.errors) <= max_steps)
}

struct Validation<'s> {
    root: &'s Value,
    counted: BTreeMap<(*const Value, *const Value), Steps>,
    depth: usize,
}

impl<'s> Validation<'s> {
    /// The steps to evaluate a schema on a value, or none above the limits.
    fn of(&mut self, schema: &'s Value, data: &Value) -> Option<Steps> {
        let Value::Object(keywords) = schema else {
            return Some(Steps {
                result: 1,
                errors: 1,
            });
        };
        let here = (std::ptr::from_ref(schema), std::ptr::from_ref(data));
        if let Some(steps) = self.counted.get(&here) {
            return Some(*steps);
        }
        if self.counted.len() >= MAX_PAIRS || self.depth >= MAX_VALIDATION_DEPTH {
            return None;
        }
        self.depth += 1;
        let own = own_nodes(keywords).saturating_add(own_steps(keywords, data));
        let mut steps = Steps {
            result: own,
            errors: own,
        };
        for (scope, subschema) in subschemas(self.root, keywords) {
            match scope {
                Scope::Same => steps.add(self.of(subschema, data)?),
                Scope::SameTwice => {
                    let mut twice = self.of(subschema, data)?;
                    twice.errors = twice.errors.saturating_add(twice.result);
                    steps.add(twice);
                }
                Scope::Property(name) => {
                    if let Some(value) = data.get(name) {
                        steps.add(self.of(subschema, value)?);
                    }
                }
                Scope::Children => {
                    for value in children(data) {
                        steps.add(self.of(subschema, value)?);
                    }
                }
                Scope::Nothing => {}
            }
        }
        if keywords.contains_key("unevaluatedProperties")
            || keywords.contains_key("unevaluatedItems")
        {
            // The other keywords are evaluated again for each child.
            steps = steps.times(1 + count(children(data).count()));
        }
        self.depth -= 1;
        self.counted.insert(here, steps);
        Some(steps)
    }
}

fn children(data: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match data {
        Value::Object(fields) => Box::new(fields.values()),
        Value::Array(entries) => Box::new(entries.iter()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Box::new(std::iter::empty())
        }
    }
}

/// The nodes of a schema without its subschemas: itself, and data that values are compared with.
fn own_nodes(keywords: &Map<String, Value>) -> u64 {
    let data = ["const", "enum", "required", "dependentRequired"];
    let data = data.iter().filter_map(|keyword| keywords.get(*keyword));
    data.map(data_nodes).fold(1, u64::saturating_add)
}

/// The steps of keywords that read a whole text or list.
fn own_steps(keywords: &Map<String, Value>, data: &Value) -> u64 {
    let has = |keyword: &str| u64::from(keywords.contains_key(keyword));
    match data {
        Value::String(text) => has("pattern") * count(text.len()) / PATTERN_BYTES_PER_STEP,
        Value::Array(entries) => has("uniqueItems") * count(entries.len()) * UNIQUE_STEPS,
        Value::Object(fields) => has("patternProperties") * count(fields.len()),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

fn data_nodes(value: &Value) -> u64 {
    children(value).map(data_nodes).fold(1, u64::saturating_add)
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
