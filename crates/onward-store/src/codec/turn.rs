//! State of the turn detector, as one bounded text.
//!
//! JSON with a version; hashes are hexadecimal digits without separators, because there are
//! thousands of them. Previews are stored without secrets. A text of another version, or one that
//! is longer than any state, is [`Undecodable`]; then the caller starts with a fresh state.

use onward_core::Timestamp;
use onward_core::turn::secret::mask;
use onward_core::turn::{Evidence, IdleReason, State};
use serde_json::{Value, json};

use super::Undecodable;
use super::read::Fields;

const VERSION: u32 = 1;

/// More than the largest state needs.
const LONGEST: usize = 256 * 1024;

/// Encodes a state.
pub fn encode_turn(state: &State) -> String {
    let evidence: Vec<Value> = state.evidence.iter().map(written).collect();
    let mut whole = json!({
        "version": VERSION,
        "step": state.step,
        "idleHalves": state.idle_halves,
        "lines": digits(state.lines.iter().map(|line| (u64::from(*line), 8))),
        "outputs": digits(state.outputs.iter().map(|output| (*output, 16))),
        "calls": digits(state.calls.iter().flat_map(|(call, done, (head, tail))| {
            [(*call, 16), (*done, 16), (u64::from(*head), 8), (u64::from(*tail), 8)]
        })),
        "evidence": evidence,
    });
    if let Some(fields) = whole.as_object_mut() {
        if let Some(at) = state.counted_at {
            fields.insert("countedAt".to_owned(), at.to_string().into());
        }
        if !state.tasks.is_empty() {
            let tasks = state.tasks.iter().map(task_written);
            fields.insert("tasks".to_owned(), tasks.collect());
        }
    }
    whole.to_string()
}

/// Decodes the output of [`encode_turn`].
pub fn decode_turn(text: &str) -> Result<State, Undecodable> {
    if text.len() > LONGEST {
        return Err(whole(format!(
            "{} bytes exceed the maximum of {LONGEST}",
            text.len()
        )));
    }
    let value: Value =
        serde_json::from_str(text).map_err(|why| whole(format!("invalid JSON: {why}")))?;
    let fields = Fields::of_whole("the state", &value)?;
    let version: u32 = fields.get("version")?;
    if version != VERSION {
        return Err(whole(format!(
            "unsupported version {version}, expected {VERSION}"
        )));
    }
    let calls = numbers(&fields, "calls", &[16, 16, 8, 8])?;
    Ok(State {
        step: fields.get("step")?,
        idle_halves: fields.get("idleHalves")?,
        counted_at: fields.get_some::<Timestamp>("countedAt")?,
        lines: (numbers(&fields, "lines", &[8])?.into_iter())
            .map(narrow)
            .collect(),
        outputs: numbers(&fields, "outputs", &[16])?,
        calls: (calls.chunks_exact(4))
            .map(|call| (call[0], call[1], (narrow(call[2]), narrow(call[3]))))
            .collect(),
        tasks: match fields.has("tasks") {
            true => fields.objects("tasks", task)?,
            // A state written before tasks were supported has none.
            false => Vec::new(),
        },
        evidence: fields.objects("evidence", evidence)?,
    })
}

fn task_written((task, step, at): &(u64, u32, Option<Timestamp>)) -> Value {
    let task = digits(std::iter::once((*task, 16)));
    match at {
        Some(at) => json!({ "task": task, "step": step, "at": at.to_string() }),
        None => json!({ "task": task, "step": step }),
    }
}

fn task(fields: &Fields<'_>) -> Result<(u64, u32, Option<Timestamp>), Undecodable> {
    let [task] = numbers(fields, "task", &[16])?[..] else {
        return Err(fields.refused("task", "not a single number"));
    };
    let at = fields.get_some::<Timestamp>("at")?;
    Ok((task, fields.get("step")?, at))
}

fn written(evidence: &Evidence) -> Value {
    let clean = |text: &str| mask(text).replace('\0', "\u{FFFD}");
    json!({
        "step": evidence.step,
        "tool": clean(&evidence.tool),
        "input": clean(&evidence.input),
        "output": clean(&evidence.output),
        "why": evidence.reason.as_str(),
    })
}

fn evidence(fields: &Fields<'_>) -> Result<Evidence, Undecodable> {
    Ok(Evidence {
        step: fields.get("step")?,
        tool: fields.get("tool")?,
        input: fields.get("input")?,
        output: fields.get("output")?,
        reason: fields.word("why", &IdleReason::ALL, IdleReason::as_str)?,
    })
}

/// Numbers one after the other, each with its number of digits.
fn digits(numbers: impl Iterator<Item = (u64, usize)>) -> String {
    // Without `format!`, because there are thousands of numbers, and a hook waits for them.
    let mut text = String::new();
    for (number, width) in numbers {
        let places = (0..width).rev().map(|place| (number >> (4 * place)) & 0xf);
        text.extend(places.filter_map(|digit| char::from_digit(u32::try_from(digit).ok()?, 16)));
    }
    text
}

/// Numbers of these widths, repeated up to the end.
fn numbers(fields: &Fields<'_>, key: &str, widths: &[usize]) -> Result<Vec<u64>, Undecodable> {
    let text: &str = fields.get(key)?;
    let all: usize = widths.iter().sum();
    if !text.len().is_multiple_of(all) {
        return Err(fields.refused(key, "truncated"));
    }
    let mut rest = text;
    let mut numbers = Vec::with_capacity(text.len() / all * widths.len());
    for width in widths.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (digits, after) = rest
            .split_at_checked(*width)
            .ok_or_else(|| fields.refused(key, "not a sequence of digits"))?;
        rest = after;
        let number = u64::from_str_radix(digits, 16);
        numbers.push(number.map_err(|why| fields.refused(key, why))?);
    }
    Ok(numbers)
}

fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn whole(why: String) -> Undecodable {
    let path = String::new();
    Undecodable { path, why }
}
