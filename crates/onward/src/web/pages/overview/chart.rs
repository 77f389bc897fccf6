//! The chart of the overview: finished steps, stuck plans and review requests of each hour, with the
//! local time below and the highest number above.

use onward_core::Timestamp;
use onward_engine::HourCount;

use super::HOUR_MS;
use crate::output::time::Zone;
use crate::web::pages::timeline::Percent;

/// Hours in the chart.
pub(super) const HOURS: i64 = 48;
/// Hours between two labels.
const TICK_HOURS: i64 = 12;
/// The baseline of the bars, and the height of the highest one.
const BASELINE: u64 = 76;
const HEIGHT: u64 = 60;
/// Names of the events, the classes of their bars, and their labels.
const KINDS: [(&str, &str, &str); 3] = [
    ("step_completed", "done", "finished"),
    ("plan_stalled", "stuck", "stuck"),
    ("user_reviewed", "needs_you", "review requests"),
];

pub(super) struct Chart {
    pub(super) bars: Vec<Bar>,
    pub(super) ticks: Vec<Tick>,
    /// The number at the top of the scale.
    pub(super) top: u64,
    /// The chart as text.
    pub(super) text: String,
}

pub(super) struct Bar {
    pub(super) x: Percent,
    pub(super) y: u64,
    pub(super) height: u64,
    pub(super) class: &'static str,
    pub(super) title: String,
}

/// A time on the axis.
pub(super) struct Tick {
    pub(super) x: Percent,
    pub(super) at: Timestamp,
    pub(super) label: String,
    /// On which side of the position the label is, so that it stays inside the chart.
    pub(super) anchor: &'static str,
}

impl Chart {
    pub(super) fn new(hours: &[HourCount], now: Timestamp) -> Self {
        let last = now.as_millis() / HOUR_MS;
        let first = last - HOURS + 1;
        let finished = hours.iter().filter(|count| count.name == KINDS[0].0);
        let top = round_up(finished.map(|count| count.events).max().unwrap_or(0));
        let (mut bars, mut ticks) = (Vec::new(), Vec::new());
        for hour in first..=last {
            let x = position(hour - first);
            ticks.extend(tick(hour, hour - first));
            for (row, (name, class, label)) in (0..).zip(KINDS) {
                let found = hours
                    .iter()
                    .find(|count| count.hour == hour && count.name == name);
                let events = found.map_or(0, |count| count.events);
                if events == 0 {
                    continue;
                }
                let (y, height) = match row {
                    // Finished steps grow upwards, the other two are marks below.
                    0 => {
                        let height = (events * HEIGHT / top).max(2);
                        (BASELINE - height, height)
                    }
                    row => (BASELINE - 2 + 6 * row, 4),
                };
                bars.push(Bar {
                    x,
                    y,
                    height,
                    class,
                    title: format!("{} h ago: {events} {label}", last - hour),
                });
            }
        }
        let total = |name: &str| -> u64 {
            let of_name = hours.iter().filter(|count| count.name == name);
            of_name.map(|count| count.events).sum()
        };
        let text = KINDS
            .map(|(name, _, label)| format!("{} {label}", total(name)))
            .join(", ");
        Self {
            bars,
            ticks,
            top,
            text,
        }
    }
}

fn position(column: i64) -> Percent {
    Percent(u64::try_from(column * 1_000 / HOURS).unwrap_or(0))
}

/// The label of an hour, at noon and midnight.
fn tick(hour: i64, column: i64) -> Option<Tick> {
    let at = Timestamp::from_millis(hour * HOUR_MS);
    (Zone::local().hour(at) % TICK_HOURS == 0).then(|| Tick {
        x: position(column),
        at,
        label: Zone::local().tick(at),
        anchor: match column {
            0..4 => "start",
            44.. => "end",
            _ => "middle",
        },
    })
}

/// The next of 5, 10, 20, 50, 100 and so on.
fn round_up(number: u64) -> u64 {
    let steps = (0..12).map(|power| 5 * 10_u64.pow(power));
    let mut tops = steps.flat_map(|step| [step, 2 * step, 4 * step]);
    tops.find(|top| number <= *top).unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_fit_a_round_scale_and_two_days_have_four_labels() {
        let now: Timestamp = "2026-07-28T09:30:05.123Z".parse().unwrap();
        let hour = now.as_millis() / HOUR_MS;
        let counts = [(0, 23), (1, 1), (47, 7)].map(|(ago, events)| HourCount {
            hour: hour - ago,
            name: KINDS[0].0.to_owned(),
            events,
        });
        let chart = Chart::new(&counts, now);
        assert_eq!(chart.top, 50);
        let tallest = chart.bars.iter().map(|bar| bar.height).max();
        assert_eq!(tallest, Some(23 * HEIGHT / 50));
        assert!(chart.bars.iter().all(|bar| bar.y + bar.height == BASELINE));
        assert_eq!(chart.ticks.len(), 4);
        assert_eq!(
            [0, 5, 6, 11, 51, 600].map(round_up),
            [5, 5, 10, 20, 100, 1_000]
        );
    }
}
