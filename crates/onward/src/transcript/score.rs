//! Compares verdicts with labels: detected stuck turns and disturbed healthy turns.
//!
//! A stuck turn is caught if the verdict is within its stuck steps, plus or minus [`TOLERANCE`]. A
//! verdict elsewhere in the turn is both a miss and a false alarm. A healthy turn with a verdict is
//! disturbed. Unclear turns do not count; the number of those with a verdict is printed. The delay
//! is counted from the first stuck step, and the table contains the median over all caught turns.
//! Saved steps are the stuck steps after the verdict.
//! Labels are JSON lines: `{"id", "label": "stuck"|"healthy"|"unclear", "stuck_from", "stuck_to"}`.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::lines::parse;
use super::{Error, Lines};

/// How many steps outside the stuck steps a verdict still counts as caught.
const TOLERANCE: i64 = 2;

/// A label of a turn, assigned manually.
#[derive(Deserialize)]
pub(crate) struct Label {
    pub(crate) id: String,
    #[serde(flatten)]
    pub(crate) kind: Kind,
}

/// Whether the turn makes progress.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(tag = "label", rename_all = "lowercase")]
pub(crate) enum Kind {
    /// The range of stuck steps.
    Stuck {
        stuck_from: i64,
        stuck_to: i64,
    },
    Healthy,
    Unclear,
}

/// The result of comparing a verdict with a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Caught,
    Outside,
    Missed,
    Disturbed,
    LeftAlone,
    UnclearFired,
    UnclearQuiet,
}

impl Kind {
    /// Compares the label with the step of the verdict, if there was one.
    pub(crate) fn outcome(self, stalled_at: Option<usize>) -> Outcome {
        match (self, stalled_at.map(step)) {
            (Kind::Unclear, None) => Outcome::UnclearQuiet,
            (Kind::Unclear, Some(_)) => Outcome::UnclearFired,
            (Kind::Healthy, None) => Outcome::LeftAlone,
            (Kind::Healthy, Some(_)) => Outcome::Disturbed,
            (Kind::Stuck { .. }, None) => Outcome::Missed,
            (
                Kind::Stuck {
                    stuck_from,
                    stuck_to,
                },
                Some(at),
            ) => {
                if (stuck_from - TOLERANCE..=stuck_to + TOLERANCE).contains(&at) {
                    Outcome::Caught
                } else {
                    Outcome::Outside
                }
            }
        }
    }
}

fn step(index: usize) -> i64 {
    i64::try_from(index).unwrap_or(i64::MAX)
}

/// Reads a file of labels.
pub(crate) fn read_labels(path: &Path) -> Result<Vec<Label>, Error> {
    let mut lines = Lines::open(path)?;
    let mut labels = Vec::new();
    let mut line = Vec::new();
    while let Some(number) = lines.next(&mut line)? {
        labels.push(
            parse(&line)
                .map_err(|cause| Error::from_json(lines.name(), number, "a label", cause))?,
        );
    }
    Ok(labels)
}

/// The verdict on a turn.
pub(crate) struct TurnVerdict {
    pub(crate) source: String,
    pub(crate) stalled_at: Option<usize>,
}

/// The scores: one row per source, and the totals.
pub(crate) struct Table {
    sources: BTreeMap<String, SourceCounts>,
    all: SourceCounts,
    /// Labels of turns that are not in the files.
    pub(crate) unmatched_labels: usize,
}

impl Table {
    /// Compares all labels. Turns without a label do not count.
    pub(crate) fn new(labels: &[Label], verdicts: &HashMap<String, TurnVerdict>) -> Self {
        let mut table = Table {
            sources: BTreeMap::new(),
            all: SourceCounts::default(),
            unmatched_labels: 0,
        };
        for label in labels {
            let Some(turn) = verdicts.get(&label.id) else {
                table.unmatched_labels += 1;
                continue;
            };
            let source = table.sources.entry(turn.source.clone()).or_default();
            source.count(label.kind, turn.stalled_at);
            table.all.count(label.kind, turn.stalled_at);
        }
        table
    }

    /// The table as aligned text, with the totals last.
    pub(crate) fn render(&self) -> String {
        let names = self.sources.keys().map(|name| name.chars().count());
        let width = names.max().unwrap_or_default().max("source".len());
        let mut text = format!(
            "{:width$}  stuck caught outside healthy disturbed  precision recall    F1  \
             per 1,000  delay  saved  share  unclear\n",
            "source"
        );
        let rows = self
            .sources
            .iter()
            .map(|(name, counts)| (name.as_str(), counts));
        for (name, counts) in rows.chain([("all", &self.all)]) {
            text.push_str(&format!("{name:width$}  {}\n", counts.render()));
        }
        text
    }
}

/// The counts of one row.
#[derive(Default)]
struct SourceCounts {
    stuck: u32,
    healthy: u32,
    unclear: u32,
    caught: u32,
    outside: u32,
    disturbed: u32,
    unclear_fired: u32,
    delays: Vec<i64>,
    saved: i64,
    stuck_steps: i64,
}

impl SourceCounts {
    fn count(&mut self, kind: Kind, stalled_at: Option<usize>) {
        match kind {
            Kind::Stuck {
                stuck_from,
                stuck_to,
            } => {
                self.stuck += 1;
                self.stuck_steps += stuck_to - stuck_from + 1;
            }
            Kind::Healthy => self.healthy += 1,
            Kind::Unclear => self.unclear += 1,
        }
        match kind.outcome(stalled_at) {
            Outcome::Caught => {
                self.caught += 1;
                if let (
                    Kind::Stuck {
                        stuck_from,
                        stuck_to,
                    },
                    Some(at),
                ) = (kind, stalled_at)
                {
                    self.delays.push(step(at) - stuck_from);
                    self.saved += (stuck_to - step(at)).max(0);
                }
            }
            Outcome::Outside => self.outside += 1,
            Outcome::Disturbed => self.disturbed += 1,
            Outcome::UnclearFired => self.unclear_fired += 1,
            Outcome::Missed | Outcome::LeftAlone | Outcome::UnclearQuiet => {}
        }
    }

    fn precision(&self) -> Option<f64> {
        let fired = self.caught + self.disturbed + self.outside;
        share(self.caught.into(), fired.into())
    }

    fn recall(&self) -> Option<f64> {
        share(self.caught.into(), self.stuck.into())
    }

    fn f1(&self) -> Option<f64> {
        let precision = self.precision().unwrap_or_default();
        let recall = self.recall()?;
        let both = precision * recall;
        Some(if both > 0.0 {
            2.0 * both / (precision + recall)
        } else {
            0.0
        })
    }

    fn disturbed_per_1000(&self) -> Option<f64> {
        share((self.disturbed * 1000).into(), self.healthy.into())
    }

    fn median_delay(&self) -> Option<f64> {
        let mut delays = self.delays.clone();
        delays.sort_unstable();
        let upper = *delays.get(delays.len() / 2)?;
        let lower = *delays.get((delays.len() - 1) / 2)?;
        Some((lower as f64 + upper as f64) / 2.0)
    }

    fn saved_share(&self) -> Option<f64> {
        share(self.saved as f64, self.stuck_steps as f64)
    }

    fn render(&self) -> String {
        format!(
            "{:>5} {:>6} {:>7} {:>7} {:>9}  {:>9} {:>6} {:>5}  {:>9}  {:>5}  {:>5}  {:>5}  {:>7}",
            self.stuck,
            self.caught,
            self.outside,
            self.healthy,
            self.disturbed,
            format_optional(self.precision(), 3),
            format_optional(self.recall(), 3),
            format_optional(self.f1(), 3),
            format_optional(self.disturbed_per_1000(), 1),
            format_optional(self.median_delay(), 1),
            self.saved,
            format_optional(self.saved_share(), 3),
            format!("{}/{}", self.unclear_fired, self.unclear),
        )
    }
}

fn share(part: f64, whole: f64) -> Option<f64> {
    (whole != 0.0).then(|| part / whole)
}

fn format_optional(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}
