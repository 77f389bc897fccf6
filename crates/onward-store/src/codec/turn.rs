//! State of the turn detector, as one bounded text.
//!
//! JSON with a version; hashes are hexadecimal digits without separators, because there are
//! thousands of them. Previews are stored without secrets. A text of another version, or one that
//! is longer than any state, is [`Undecodable`]; then the caller starts with a fresh state.

use std::time::Duration;

use onward_core::Timestamp;
use onward_core::secret::mask;
use onward_core::turn::{Evidence, IdleReason, LastOutput, State};
use serde::{Deserialize, Serialize};

use super::scalar::{Text, optional};
use super::{Undecodable, json};

const VERSION: u32 = 2;

/// More than the largest state needs.
const LONGEST: usize = 256 * 1024;

/// Mirror of a state. Fields are in alphabetical order of their keys.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StateJson {
    calls: String,
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    counted_at: Option<Text<Timestamp>>,
    evidence: Vec<EvidenceJson>,
    idle_halves: u32,
    lines: String,
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    observed_at: Option<Text<Timestamp>>,
    outputs: String,
    step: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tasks: Vec<TaskJson>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    trees: String,
    version: u32,
    #[serde(default)]
    waited_ms: u64,
}

#[derive(Serialize, Deserialize)]
struct EvidenceJson {
    input: String,
    output: String,
    step: u32,
    tool: String,
    #[serde(with = "IdleReasonJson")]
    why: IdleReason,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "IdleReason", rename_all = "snake_case")]
enum IdleReasonJson {
    Failed,
    SameError,
    Refused,
    NotFound,
    NoOp,
    Empty,
    Short,
    Seen,
    Repeated,
    Fluctuates,
    Waits,
    Reverted,
}

#[derive(Serialize, Deserialize)]
struct TaskJson {
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    at: Option<Text<Timestamp>>,
    step: u32,
    task: String,
}

/// Encodes a state.
pub fn encode_turn(state: &State) -> String {
    let tasks = state.tasks.iter().map(|(task, step, at)| TaskJson {
        at: at.map(Text),
        step: *step,
        task: digits([(*task, 16)]),
    });
    let calls = state.calls.iter().flat_map(|(call, last)| {
        let [first, second, third] = last.numbers;
        let words = [last.done, last.ends.0, last.ends.1, first, second, third];
        let counts = [last.moves, last.drifts].map(|count| (u64::from(count), 2));
        [(*call, 16)]
            .into_iter()
            .chain(words.map(|word| (u64::from(word), 8)))
            .chain(counts)
    });
    json::write(&StateJson {
        calls: digits(calls),
        counted_at: state.counted_at.map(Text),
        evidence: state.evidence.iter().map(EvidenceJson::from).collect(),
        idle_halves: state.idle_halves,
        lines: digits(state.lines.iter().map(|line| (u64::from(*line), 8))),
        observed_at: state.observed_at.map(Text),
        outputs: digits(state.outputs.iter().map(|output| (*output, 16))),
        step: state.step,
        tasks: tasks.collect(),
        trees: digits(state.trees.iter().map(|tree| (*tree, 16))),
        version: VERSION,
        waited_ms: u64::try_from(state.waited.as_millis()).unwrap_or(u64::MAX),
    })
}

/// Decodes the output of [`encode_turn`].
pub fn decode_turn(text: &str) -> Result<State, Undecodable> {
    if text.len() > LONGEST {
        let why = format!("{} bytes exceed the maximum of {LONGEST}", text.len());
        return Err(Undecodable::new("", why));
    }
    let state: StateJson = json::read_object(text)?;
    if state.version != VERSION {
        let why = format!("unsupported version {}, expected {VERSION}", state.version);
        return Err(Undecodable::new("", why));
    }
    let lines = numbers("lines", &state.lines, &[8])?;
    let calls = numbers("calls", &state.calls, &CALL_WIDTHS)?;
    let tasks = state.tasks.into_iter().enumerate().map(|(index, json)| {
        let path = format!("tasks[{index}].task");
        match numbers(&path, &json.task, &[16])?[..] {
            [task] => Ok((task, json.step, json.at.map(|at| at.0))),
            _ => Err(Undecodable::new(&path, "not a single number")),
        }
    });
    Ok(State {
        step: state.step,
        idle_halves: state.idle_halves,
        waited: Duration::from_millis(state.waited_ms),
        counted_at: state.counted_at.map(|at| at.0),
        observed_at: state.observed_at.map(|at| at.0),
        lines: lines.into_iter().map(narrow).collect(),
        outputs: numbers("outputs", &state.outputs, &[16])?,
        calls: calls.chunks_exact(CALL_WIDTHS.len()).map(call).collect(),
        tasks: tasks.collect::<Result<_, _>>()?,
        trees: numbers("trees", &state.trees, &[16])?,
        evidence: state.evidence.into_iter().map(Evidence::from).collect(),
    })
}

/// The digits of a call: its hash, its reported progress, the ends of its output, three numbers,
/// their moves, and its drifts.
const CALL_WIDTHS: [usize; 9] = [16, 8, 8, 8, 8, 8, 8, 2, 2];

fn call(numbers: &[u64]) -> (u64, LastOutput) {
    let at = |place: usize| numbers.get(place).copied().unwrap_or_default();
    let byte = |place: usize| u8::try_from(at(place)).unwrap_or(u8::MAX);
    let last = LastOutput {
        done: narrow(at(1)),
        ends: (narrow(at(2)), narrow(at(3))),
        numbers: [narrow(at(4)), narrow(at(5)), narrow(at(6))],
        moves: byte(7),
        drifts: byte(8),
    };
    (at(0), last)
}

impl From<&Evidence> for EvidenceJson {
    fn from(evidence: &Evidence) -> Self {
        let clean = |text: &str| mask(text).replace('\0', "\u{FFFD}");
        Self {
            input: clean(&evidence.input),
            output: clean(&evidence.output),
            step: evidence.step,
            tool: clean(&evidence.tool),
            why: evidence.reason,
        }
    }
}

impl From<EvidenceJson> for Evidence {
    fn from(json: EvidenceJson) -> Self {
        Self {
            step: json.step,
            tool: json.tool,
            input: json.input,
            output: json.output,
            reason: json.why,
        }
    }
}

/// Numbers one after the other, each with its number of digits.
fn digits(numbers: impl IntoIterator<Item = (u64, usize)>) -> String {
    // Without `format!`, because there are thousands of numbers, and a hook waits for them.
    let mut text = String::new();
    for (number, width) in numbers {
        let places = (0..width).rev().map(|place| (number >> (4 * place)) & 0xf);
        text.extend(places.filter_map(|digit| char::from_digit(u32::try_from(digit).ok()?, 16)));
    }
    text
}

/// Numbers of these widths, repeated up to the end.
fn numbers(path: &str, text: &str, widths: &[usize]) -> Result<Vec<u64>, Undecodable> {
    let all: usize = widths.iter().sum();
    if !text.len().is_multiple_of(all) {
        return Err(Undecodable::new(path, "truncated"));
    }
    let mut rest = text;
    let mut numbers = Vec::with_capacity(text.len() / all * widths.len());
    for width in widths.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (digits, after) = rest
            .split_at_checked(*width)
            .ok_or_else(|| Undecodable::new(path, "not a sequence of digits"))?;
        rest = after;
        let number = u64::from_str_radix(digits, 16);
        numbers.push(number.map_err(|why| Undecodable::new(path, why))?);
    }
    Ok(numbers)
}

fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
