//! Times as people say them, in this machine's time zone.
//!
//! In: what a user typed, or a time. Out: a time, or text. Never asks what time it is.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _, Zoned};
use std::ops::Range;
use std::time::{Duration, SystemTime};

/// A time within a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// So long after its beginning.
    After(Duration),
    /// A date, and a time of that day.
    Date(DateTime),
    /// A time of the day on which it began, or of the next if that is nearer.
    Time(Time),
}

/// Further apart than this, a time of day is nearer to another day's.
const HALF_A_DAY: SignedDuration = SignedDuration::from_hours(12);

impl Moment {
    /// A time of day, such as `14:05` or `14:05:30`, with or without a date before it, such as `2026-11-22 14:05`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let early = format!("0{text}");
        // The leading zero of an hour may be missing.
        let text = match text.as_bytes() {
            [digit, b':', ..] if digit.is_ascii_digit() => &early,
            _ => text,
        };
        // Texts with a date alone are read as its midnight by one parser and refused by the other.
        if let Ok(time) = text.parse::<Time>()
            && text.contains(':')
            && !text.contains('-')
        {
            return Some(Self::Time(time));
        }
        text.parse::<DateTime>().ok().map(Self::Date)
    }

    /// Which time that is of a recording that `began` then.
    pub fn of(self, began: SystemTime) -> SystemTime {
        self.within(began, TimeZone::system())
    }

    fn within(self, began: SystemTime, zone: TimeZone) -> SystemTime {
        let resolved = match self {
            Self::After(duration) => return began.checked_add(duration).unwrap_or(began),
            Self::Date(date) => date.to_zoned(zone).ok(),
            Self::Time(time) => zoned(began, zone).and_then(|began| {
                let same_day = began.with().time(time).build().ok()?;
                match began.duration_since(&same_day) > HALF_A_DAY {
                    true => same_day.checked_add(1.day()).ok(),
                    false => Some(same_day),
                }
            }),
        };
        resolved.map_or(began, |time| time.timestamp().into())
    }
}

/// A part of a recording's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Between {
    /// From then on; none from its beginning on.
    pub from: Option<Moment>,
    /// Before that; none to its end.
    pub to: Option<Moment>,
}

impl Between {
    /// Whether one of its moments is told from the beginning.
    pub fn is_after(self) -> bool {
        let moments = [self.from, self.to].into_iter().flatten();
        moments
            .into_iter()
            .any(|moment| matches!(moment, Moment::After(_)))
    }

    /// Which time that is of a recording that `began` then.
    pub fn of(self, began: SystemTime) -> Range<SystemTime> {
        let from = self
            .from
            .map_or(SystemTime::UNIX_EPOCH, |from| from.of(began));
        // Beyond what a file can tell.
        let end = || SystemTime::UNIX_EPOCH + Duration::from_nanos(u64::MAX);
        from..self.to.map_or_else(end, |to| to.of(began))
    }
}

/// An hour of a day in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hour(i64);

/// Seconds of an hour.
const HOUR: i64 = 3600;

impl Hour {
    /// That of a time.
    pub fn of(time: SystemTime) -> Self {
        let seconds = Timestamp::try_from(time).map_or(0, Timestamp::as_second);
        Self(seconds.div_euclid(HOUR))
    }

    /// By a date and a number of two digits; none if these are none.
    pub fn parse(date: &str, number: &str) -> Option<Self> {
        let number = (number.len() == 2).then(|| number.parse().ok())??;
        let begin = date
            .parse::<Date>()
            .ok()?
            .at(number_of_day(number)?, 0, 0, 0);
        let begin = begin.to_zoned(TimeZone::UTC).ok()?.timestamp();
        Some(Self(begin.as_second().div_euclid(HOUR)))
    }

    fn begin(self) -> Timestamp {
        Timestamp::from_second(self.0.saturating_mul(HOUR)).unwrap_or_default()
    }

    /// When it begins.
    pub fn start(self) -> SystemTime {
        self.begin().into()
    }

    /// When it ends.
    pub fn end(self) -> SystemTime {
        Self(self.0 + 1).start()
    }

    /// Its date: `2026-11-22`.
    pub fn date(self) -> String {
        self.begin().strftime("%Y-%m-%d").to_string()
    }

    /// Its number of two digits.
    pub fn number(self) -> String {
        self.begin().strftime("%H").to_string()
    }
}

fn number_of_day(number: i8) -> Option<i8> {
    (0..24).contains(&number).then_some(number)
}

/// The date and the time of day, to the second.
pub fn shown(time: SystemTime) -> String {
    zoned(time, TimeZone::system()).map_or_else(
        || "a time beyond the calendar".to_owned(),
        |time| time.strftime("%Y-%m-%d %H:%M:%S").to_string(),
    )
}

/// The time that a date of HTTP means (RFC 9110, section 5.6.7), such as `Sun, 06 Nov 1994 08:49:37 GMT`.
pub fn http_date(text: &str) -> Option<SystemTime> {
    let date = jiff::fmt::rfc2822::parse(text).ok()?;
    Some(date.timestamp().into())
}

fn zoned(time: SystemTime, zone: TimeZone) -> Option<Zoned> {
    Some(Timestamp::try_from(time).ok()?.to_zoned(zone))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-22 22:13:20, in UTC.
    fn began() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_385_600)
    }

    #[test]
    fn moments_are_on_the_intended_day() {
        for (typed, after) in [
            ("22:14", Some(40)),
            ("22:14:01.5", Some(41)),
            ("22:00", Some(-800)),
            ("03:13:20", Some(5 * 3600)),
            ("3:13:20", Some(5 * 3600)),
            ("2026-11-23 22:13:20", Some(86400)),
            ("2026-11-22T22:13:21", Some(1)),
            ("25:00", None),
            ("yesterday", None),
            ("22", None),
            ("", None),
        ] {
            let moment = Moment::parse(typed).map(|moment| moment.within(began(), TimeZone::UTC));
            let second = Duration::from_secs(1);
            let seconds = moment.map(|moment| match moment.duration_since(began()) {
                Ok(after) => (after.as_secs()) as i64,
                Err(before) => -((before.duration() + second / 2).as_secs() as i64),
            });
            assert_eq!(seconds, after, "{typed}");
        }
        let after = Moment::After(Duration::from_secs(90));
        assert_eq!(after.of(began()), began() + Duration::from_secs(90));
    }

    #[test]
    fn hours_are_those_of_days_in_utc() {
        let hour = Hour::of(began());
        assert_eq!((&*hour.date(), &*hour.number()), ("2026-11-22", "22"));
        assert_eq!(Hour::parse("2026-11-22", "22"), Some(hour));
        assert_eq!(hour.end(), hour.start() + Duration::from_secs(3600));
        for (date, number) in [
            ("2026-11-22", "24"),
            ("2026-13-01", "00"),
            ("", "1"),
            ("2026-11-22", "-1"),
        ] {
            assert_eq!(Hour::parse(date, number), None, "{date} {number}");
        }
    }

    #[test]
    fn times_beyond_the_calendar_are_rejected() {
        let far = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(1 << 60));
        assert_eq!(shown(far.unwrap()), "a time beyond the calendar");
        assert!(shown(began()).starts_with("2026-11-2"));
    }
}
