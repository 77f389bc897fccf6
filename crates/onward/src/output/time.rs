//! Times in the local time zone, or in UTC with `--utc`.
//!
//! The zone is that of `TZ` or of the system. If it is unknown, times are in UTC. Only these times
//! and those of `--utc` have the suffix `Z`.

use std::sync::OnceLock;

use jiff::tz::TimeZone;
use onward_core::Timestamp;

/// A time zone.
#[derive(Clone, Copy)]
pub(crate) struct Zone {
    zone: &'static TimeZone,
    is_utc: bool,
}

impl Zone {
    pub(crate) fn utc() -> Self {
        static UTC: TimeZone = TimeZone::UTC;
        Self {
            zone: &UTC,
            is_utc: true,
        }
    }

    pub(crate) fn local() -> Self {
        static LOCAL: OnceLock<Option<TimeZone>> = OnceLock::new();
        match LOCAL.get_or_init(|| TimeZone::try_system().ok()) {
            Some(zone) => Self {
                zone,
                is_utc: false,
            },
            None => Self::utc(),
        }
    }

    fn suffix(self) -> &'static str {
        if self.is_utc { "Z" } else { "" }
    }

    fn format(self, at: Timestamp, pattern: &str) -> String {
        match jiff::Timestamp::from_millisecond(at.as_millis()) {
            Ok(instant) => {
                let local = instant.to_zoned(self.zone.clone());
                format!("{}{}", local.strftime(pattern), self.suffix())
            }
            // Outside the years that the calendar supports.
            Err(_) => at.to_string(),
        }
    }

    /// The name of the zone.
    pub(crate) fn name(self) -> String {
        self.zone.iana_name().unwrap_or("local time").to_owned()
    }

    /// The date in words, `Wednesday, 18 November 2026`.
    pub(crate) fn day(self, at: Timestamp) -> String {
        let day = self.format(at, "%A, %-d %B %Y");
        day.trim_end_matches('Z').to_owned()
    }

    /// The hour of the day.
    pub(crate) fn hour(self, at: Timestamp) -> i64 {
        let hour = self.format(at, "%H");
        hour.trim_end_matches('Z').parse().unwrap_or(0)
    }

    /// The label of an axis: the date at midnight, otherwise the time of day.
    pub(crate) fn tick(self, at: Timestamp) -> String {
        let time = self.format(at, "%H:%M");
        let label = match time.trim_end_matches('Z') {
            "00:00" => self.format(at, "%-d %b"),
            _ => time,
        };
        label.trim_end_matches('Z').to_owned()
    }

    /// A date and time, to the second.
    pub(crate) fn date_time(self, at: Timestamp) -> String {
        self.format(at, "%Y-%m-%d %H:%M:%S")
    }

    /// The time of a recent event: with the date unless it is of the same day as `now`.
    pub(crate) fn time(self, at: Timestamp, now: Timestamp) -> String {
        if self.is_same_day(at, now) {
            self.format(at, "%H:%M")
        } else {
            self.format(at, "%Y-%m-%d %H:%M")
        }
    }

    /// The time of day, to the second.
    pub(crate) fn clock(self, at: Timestamp) -> String {
        self.format(at, "%H:%M:%S")
    }

    pub(crate) fn is_same_day(self, one: Timestamp, other: Timestamp) -> bool {
        self.date(one) == self.date(other)
    }

    /// The date, without a suffix.
    pub(crate) fn date(self, at: Timestamp) -> String {
        let date = self.format(at, "%Y-%m-%d");
        date.trim_end_matches('Z').to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_the_time_of_the_zone_and_marks_utc() {
        static EAST: OnceLock<TimeZone> = OnceLock::new();
        let east = Zone {
            zone: EAST.get_or_init(|| TimeZone::fixed(jiff::tz::offset(2))),
            is_utc: false,
        };
        let at: Timestamp = "2026-07-28T22:30:05.123Z".parse().unwrap();
        assert_eq!(east.date_time(at), "2026-07-29 00:30:05");
        assert_eq!(Zone::utc().date_time(at), "2026-07-28 22:30:05Z");
        assert_eq!(Zone::utc().clock(at), "22:30:05Z");
        let later: Timestamp = "2026-07-29T01:00:00Z".parse().unwrap();
        assert_eq!(east.time(at, later), "00:30");
        assert_eq!(east.tick(at), "00:30");
        let midnight: Timestamp = "2026-07-28T22:00:00Z".parse().unwrap();
        assert_eq!(east.tick(midnight), "29 Jul");
        assert_eq!(Zone::utc().tick(midnight), "22:00");
        assert_eq!(Zone::utc().name(), "UTC");
        assert_eq!(Zone::utc().time(at, later), "2026-07-28 22:30Z");
    }
}
