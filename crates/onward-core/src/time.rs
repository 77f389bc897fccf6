//! Instants, in whole milliseconds since 1970 in UTC.
//!
//! A millisecond is what the wire shows and what both databases store, so an instant survives the
//! way there and back unchanged, and a replayed plan equals the stored one. Spans are
//! [`std::time::Duration`]. There is no `now` here: the clock belongs to whoever calls.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// One instant. Years 1 to 9999, so that each has an RFC 3339 text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// A text that is no RFC 3339 instant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an RFC 3339 time such as `2026-07-28T09:30:00.000Z`")]
pub struct NotATime(pub String);

impl Timestamp {
    /// 0001-01-01T00:00:00.000Z.
    pub const MIN: Timestamp = Timestamp(-62_135_596_800_000);
    /// 9999-12-30T22:00:00.000Z, the last whole hour that every time zone can still show.
    pub const MAX: Timestamp = Timestamp(253_402_207_200_000);

    /// The instant this many milliseconds after 1970 began. Saturates at [`MIN`](Self::MIN) and
    /// [`MAX`](Self::MAX).
    pub const fn from_millis(millis: i64) -> Self {
        if millis < Self::MIN.0 {
            Self::MIN
        } else if millis > Self::MAX.0 {
            Self::MAX
        } else {
            Timestamp(millis)
        }
    }

    /// Milliseconds since 1970 began.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// The instant `span` later, or `None` where that lies past [`MAX`](Self::MAX): it never comes.
    /// Parts of a millisecond are dropped.
    pub fn checked_add(self, span: Duration) -> Option<Self> {
        let millis = i64::try_from(span.as_millis()).ok()?;
        let sum = self.0.checked_add(millis)?;
        (sum <= Self::MAX.0).then_some(Timestamp(sum))
    }

    /// How long after `earlier` this is; nothing where it is not after it.
    pub fn since(self, earlier: Timestamp) -> Duration {
        let millis = self.0.saturating_sub(earlier.0);
        Duration::from_millis(u64::try_from(millis).unwrap_or(0))
    }

    /// The first instant after this one. A limit is "alive at, stalled after", so whoever sleeps
    /// until something can change sleeps until here.
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
    type Err = NotATime;

    /// Reads any RFC 3339 instant, in any offset. Parts of a millisecond are dropped.
    fn from_str(text: &str) -> Result<Self, NotATime> {
        text.parse::<jiff::Timestamp>()
            .map(|instant| Self::from_millis(instant.as_millisecond()))
            .map_err(|_| NotATime(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_reads_back_what_it_shows() {
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
    fn what_lies_outside_of_time_is_its_edge() {
        assert_eq!(Timestamp::from_millis(i64::MIN), Timestamp::MIN);
        assert_eq!(Timestamp::from_millis(i64::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::from_millis(1_500).as_millis(), 1_500);
        assert_eq!(format!("{:?}", Timestamp::MIN), "0001-01-01T00:00:00.000Z");
    }

    #[test]
    fn an_offset_is_read_and_shown_in_utc() {
        let instant: Timestamp = "2026-07-28T11:30:00.0009+02:00".parse().unwrap();
        assert_eq!(instant.to_string(), "2026-07-28T09:30:00.000Z");
    }

    #[test]
    fn what_lies_past_the_end_of_time_never_comes() {
        assert_eq!(Timestamp::MAX.checked_add(Duration::from_millis(1)), None);
        assert_eq!(Timestamp::from_millis(0).checked_add(Duration::MAX), None);
        assert_eq!(Timestamp::MAX.next(), Timestamp::MAX);
    }

    #[test]
    fn the_future_is_no_time_ago() {
        let now = Timestamp::from_millis(10);
        assert_eq!(now.since(Timestamp::from_millis(20)), Duration::ZERO);
        assert_eq!(
            now.since(Timestamp::from_millis(3)),
            Duration::from_millis(7)
        );
    }
}
