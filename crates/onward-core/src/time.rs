//! Timestamps: whole milliseconds since the Unix epoch, in UTC.
//!
//! The API and both databases use milliseconds, so a timestamp survives a round trip unchanged and
//! a replayed plan equals the stored one. Durations are [`std::time::Duration`]. There is no `now`
//! here: the caller has the clock.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A timestamp. Limited to the years 1 to 9999, so that each has an RFC 3339 representation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// A text that is not an RFC 3339 timestamp.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid time `{0}`: expected RFC 3339, such as `2026-07-28T09:30:00.000Z`")]
pub struct InvalidTimestamp(pub String);

impl Timestamp {
    /// 0001-01-01T00:00:00.000Z.
    pub const MIN: Timestamp = Timestamp(-62_135_596_800_000);
    /// 9999-12-30T22:00:00.000Z, the last whole hour that every time zone can represent.
    pub const MAX: Timestamp = Timestamp(253_402_207_200_000);

    /// The timestamp this many milliseconds after the Unix epoch. Saturates at [`MIN`](Self::MIN)
    /// and [`MAX`](Self::MAX).
    pub const fn from_millis(millis: i64) -> Self {
        if millis < Self::MIN.0 {
            Self::MIN
        } else if millis > Self::MAX.0 {
            Self::MAX
        } else {
            Timestamp(millis)
        }
    }

    /// Milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// The timestamp `span` later, or `None` if it exceeds [`MAX`](Self::MAX). Fractions of a
    /// millisecond are dropped.
    pub fn checked_add(self, span: Duration) -> Option<Self> {
        let millis = i64::try_from(span.as_millis()).ok()?;
        let sum = self.0.checked_add(millis)?;
        (sum <= Self::MAX.0).then_some(Timestamp(sum))
    }

    /// The timestamp `span` earlier. Saturates at [`MIN`](Self::MIN).
    pub fn saturating_sub(self, span: Duration) -> Self {
        let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.0.saturating_sub(millis))
    }

    /// The time since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Timestamp) -> Duration {
        let millis = self.0.saturating_sub(earlier.0);
        Duration::from_millis(u64::try_from(millis).unwrap_or(0))
    }

    /// The next millisecond. A limit is inclusive (not stalled at it, stalled after it), so a
    /// monitor sleeps until the millisecond after the limit.
    pub const fn next(self) -> Self {
        Self::from_millis(self.0.saturating_add(1))
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339 in UTC with milliseconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(instant) => write!(f, "{instant:.3}"),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    /// Parses an RFC 3339 timestamp with any offset. Fractions of a millisecond are dropped.
    fn from_str(text: &str) -> Result<Self, InvalidTimestamp> {
        text.parse::<jiff::Timestamp>()
            .map(|instant| Self::from_millis(instant.as_millisecond()))
            .map_err(|_| InvalidTimestamp(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_formatted_timestamp_parses_to_the_same_value() {
        for millis in [
            0,
            1,
            -1,
            1_790_000_000_123,
            Timestamp::MIN.0,
            Timestamp::MAX.0,
        ] {
            let instant = Timestamp::from_millis(millis);
            assert_eq!(instant.to_string().parse(), Ok(instant));
        }
        assert_eq!(
            Timestamp::from_millis(1_500).to_string(),
            "1970-01-01T00:00:01.500Z"
        );
    }

    #[test]
    fn from_millis_saturates() {
        assert_eq!(Timestamp::from_millis(i64::MIN), Timestamp::MIN);
        assert_eq!(Timestamp::from_millis(i64::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::from_millis(1_500).as_millis(), 1_500);
        assert_eq!(format!("{:?}", Timestamp::MIN), "0001-01-01T00:00:00.000Z");
    }

    #[test]
    fn an_offset_is_converted_to_utc() {
        let instant: Timestamp = "2026-07-28T11:30:00.0009+02:00".parse().unwrap();
        assert_eq!(instant.to_string(), "2026-07-28T09:30:00.000Z");
    }

    #[test]
    fn checked_add_returns_none_beyond_the_maximum() {
        assert_eq!(Timestamp::MAX.checked_add(Duration::from_millis(1)), None);
        assert_eq!(Timestamp::from_millis(0).checked_add(Duration::MAX), None);
        assert_eq!(Timestamp::MAX.next(), Timestamp::MAX);
    }

    #[test]
    fn since_a_later_timestamp_is_zero() {
        let now = Timestamp::from_millis(10);
        assert_eq!(now.since(Timestamp::from_millis(20)), Duration::ZERO);
        assert_eq!(
            now.since(Timestamp::from_millis(3)),
            Duration::from_millis(7)
        );
    }
}
