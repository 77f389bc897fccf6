//! The entered values of the form, and their conversion to the arguments of the tool.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::inputs::{INPUTS, Input, Kind};
use crate::web::pages::Fields;

/// The tool's lists of steps and branches.
pub(super) const STEPS: &str = "steps";
pub(super) const BRANCHES: &str = "branchingConditions";
/// Maximum number of steps and of branches in the form. Longer plans are written as files.
const MAX_ROWS: usize = 200;
const MINUTE_MS: u64 = 60_000;

/// The texts of the inputs, by field.
pub(super) type Group = BTreeMap<&'static str, String>;

/// All entered values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entries {
    pub(super) plan: Group,
    pub(super) steps: Vec<Group>,
    pub(super) branches: Vec<Group>,
}

impl Default for Entries {
    fn default() -> Self {
        Self {
            plan: Group::new(),
            steps: vec![Group::new(); 2],
            branches: Vec::new(),
        }
    }
}

impl Entries {
    pub(super) fn read(fields: &Fields) -> Self {
        let mut texts: BTreeMap<&str, &str> = BTreeMap::new();
        for (name, text) in &fields.0 {
            texts.insert(name.as_str(), text.as_str());
        }
        let group = |inputs: &'static [Input], prefix: &str| -> Option<Group> {
            let value = |input: &Input| {
                let text = texts.get(format!("{prefix}{}", input.field).as_str())?;
                // Browsers send CRLF line breaks.
                Some((input.field, text.replace("\r\n", "\n").trim().to_owned()))
            };
            let group: Group = inputs.iter().filter_map(value).collect();
            (!group.is_empty()).then_some(group)
        };
        let numbered = |inputs: &'static [Input], name: &str| {
            let groups = (0..MAX_ROWS).map(|index| group(inputs, &format!("{name}[{index}].")));
            groups.map_while(|group| group).collect()
        };
        Self {
            plan: group(&INPUTS.plan, "").unwrap_or_default(),
            steps: numbered(&INPUTS.step, STEPS),
            branches: numbered(&INPUTS.branch, BRANCHES),
        }
    }

    /// Adds a step or a branch, and returns the path of its first input.
    pub(super) fn add(&mut self, group: &str) -> Option<String> {
        let (list, name, first) = match group {
            "step" => (&mut self.steps, STEPS, INPUTS.step.first()?),
            "branch" => (&mut self.branches, BRANCHES, INPUTS.branch.first()?),
            _ => return None,
        };
        if list.len() < MAX_ROWS {
            list.push(Group::new());
        }
        let last = list.len().checked_sub(1)?;
        Some(format!("{name}[{last}].{}", first.field))
    }

    /// Removes a step, and renumbers references to the steps after it.
    pub(super) fn remove_step(&mut self, index: usize) {
        if index >= self.steps.len() {
            return;
        }
        self.steps.remove(index);
        let removed = index + 1;
        let renumber = |text: &mut String, is_list: bool| {
            let orders = orders(text).filter_map(|word| match word.parse::<usize>() {
                Ok(order) if order == removed => None,
                Ok(order) if order > removed => Some((order - 1).to_string()),
                Ok(_) | Err(_) => Some(word.to_owned()),
            });
            let orders: Vec<String> = orders.collect();
            *text = orders.join(if is_list { ", " } else { "" });
        };
        for step in &mut self.steps {
            if let Some(text) = step.get_mut("dependsOn") {
                renumber(text, true);
            }
        }
        for branch in &mut self.branches {
            for field in ["afterStepOrder", "actionParams.targetStepOrder"] {
                if let Some(text) = branch.get_mut(field) {
                    renumber(text, false);
                }
            }
        }
    }

    pub(super) fn remove_branch(&mut self, index: usize) {
        if index < self.branches.len() {
            self.branches.remove(index);
        }
    }

    /// Removes branches without content, and steps without content at the end.
    pub(super) fn remove_blank(&mut self) {
        while self
            .steps
            .last()
            .is_some_and(|step| is_blank(&INPUTS.step, step))
        {
            self.steps.pop();
        }
        self.branches
            .retain(|branch| !is_blank(&INPUTS.branch, branch));
    }

    /// The paths and labels of all inputs.
    pub(super) fn paths(&self) -> Vec<(String, String)> {
        let plan = INPUTS.plan.iter();
        let plan = plan.map(|input| (input.field.to_owned(), input.label.to_string()));
        let steps = numbered_paths(&INPUTS.step, STEPS, "Step", self.steps.len());
        let branches = numbered_paths(&INPUTS.branch, BRANCHES, "Branch", self.branches.len());
        plan.chain(steps).chain(branches).collect()
    }

    /// The arguments of the tool.
    pub(super) fn arguments(&self) -> Map<String, Value> {
        let mut arguments = object(&INPUTS.plan, &self.plan);
        let list = |inputs: &[Input], groups: &[Group]| -> Vec<Value> {
            let objects = groups.iter().map(|group| object(inputs, group).into());
            objects.collect()
        };
        arguments.insert(STEPS.to_owned(), list(&INPUTS.step, &self.steps).into());
        let branches = list(&INPUTS.branch, &self.branches);
        if !branches.is_empty() {
            arguments.insert(BRANCHES.to_owned(), branches.into());
        }
        arguments
    }
}

fn numbered_paths(
    inputs: &'static [Input],
    name: &'static str,
    label: &'static str,
    count: usize,
) -> impl Iterator<Item = (String, String)> {
    (0..count).flat_map(move |index| {
        inputs.iter().map(move |input| {
            let label = format!("{label} {}, {}", index + 1, input.label.to_lowercase());
            (format!("{name}[{index}].{}", input.field), label)
        })
    })
}

/// Whether only choices are set, which have no empty value.
fn is_blank(inputs: &[Input], group: &Group) -> bool {
    let has_text = |input: &Input| group.get(input.field).is_some_and(|text| !text.is_empty());
    !inputs
        .iter()
        .any(|input| !matches!(input.kind, Kind::Choice(_)) && has_text(input))
}

fn orders(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', ' ', '\n']).filter(|word| !word.is_empty())
}

/// The fields of the plan, a step or a branch. Inputs without a text are left out.
fn object(inputs: &[Input], group: &Group) -> Map<String, Value> {
    let mut object = Map::new();
    for input in inputs {
        let text = group.get(input.field).filter(|text| !text.is_empty());
        if let Some(text) = text {
            insert(&mut object, input.field, value(&input.kind, text));
        }
    }
    // The type of a step is always sent, even if no step is added.
    if let Some(Value::Object(params)) = object.get_mut("actionParams") {
        let is_type_only = |steps: &Value| {
            let step = steps.get(0).and_then(Value::as_object);
            step.is_some_and(|step| step.keys().all(|field| field == "stepType"))
        };
        if params.get(STEPS).is_some_and(is_type_only) {
            params.remove(STEPS);
        }
        if params.is_empty() {
            object.remove("actionParams");
        }
    }
    object
}

fn value(kind: &Kind, text: &str) -> Value {
    // The schema reports texts that are not numbers.
    let number = |text: &str| {
        text.parse::<u64>()
            .map_or_else(|_| text.into(), Value::from)
    };
    match kind {
        Kind::Line | Kind::Text | Kind::Choice(_) => text.into(),
        Kind::Integer => number(text),
        Kind::Minutes => match text.parse::<u64>() {
            Ok(minutes) => minutes.saturating_mul(MINUTE_MS).into(),
            Err(_) => text.into(),
        },
        Kind::Orders => orders(text).map(number).collect(),
        Kind::Checkbox => true.into(),
        Kind::Lines => {
            let lines = text.lines().map(str::trim);
            lines
                .filter(|line| !line.is_empty())
                .map(Value::from)
                .collect()
        }
        // The schema reports texts that are not JSON.
        Kind::Json => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
    }
}

/// Inserts a value at a path such as `actionParams.steps[0].title`.
fn insert(object: &mut Map<String, Value>, path: &str, value: Value) {
    let Some((name, rest)) = path.split_once('.') else {
        object.insert(path.to_owned(), value);
        return;
    };
    let inner = match name.strip_suffix("[0]") {
        Some(list) => {
            let list = object
                .entry(list)
                .or_insert_with(|| Value::Array(vec![Map::new().into()]));
            list.get_mut(0)
        }
        None => Some(object.entry(name).or_insert_with(|| Map::new().into())),
    };
    if let Some(Value::Object(inner)) = inner {
        insert(inner, rest, value);
    }
}
