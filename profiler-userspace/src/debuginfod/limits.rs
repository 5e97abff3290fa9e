//! How much may be fetched and how long that may take.
//!
//! In: elfutils' environment variables. Out: [`Limits`], none of them infinite.

use std::time::Duration;

/// How much may be fetched and how long that may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// For all requests of a recording together.
    pub time: Duration,
    /// From a request to the beginning of its answer.
    pub silence: Duration,
    /// The largest file, in bytes.
    pub bytes: u64,
}

impl Default for Limits {
    /// Enough for a distribution's libraries; browsers have more.
    fn default() -> Self {
        Self {
            time: Duration::from_secs(120),
            silence: Duration::from_secs(20),
            bytes: 2 << 30,
        }
    }
}

impl Limits {
    /// The limits from the environment, with defaults for the rest.
    pub fn from_environment() -> Self {
        Self::from(|name| std::env::var(name).ok())
    }

    fn from(variable: impl Fn(&str) -> Option<String>) -> Self {
        let usual = Self::default();
        // Zero means no limit in elfutils; here there is always one.
        let number = |name| {
            let number = variable(name)?.trim().parse::<u64>().ok();
            number.filter(|number| *number > 0)
        };
        Self {
            time: number("DEBUGINFOD_MAXTIME").map_or(usual.time, Duration::from_secs),
            silence: number("DEBUGINFOD_TIMEOUT").map_or(usual.silence, Duration::from_secs),
            bytes: number("DEBUGINFOD_MAXSIZE").unwrap_or(usual.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_sets_limits_but_cannot_remove_them() {
        let set = |name: &str| match name {
            "DEBUGINFOD_MAXTIME" => Some("7".to_owned()),
            "DEBUGINFOD_TIMEOUT" => Some("0".to_owned()),
            "DEBUGINFOD_MAXSIZE" => Some("lots".to_owned()),
            _ => None,
        };
        let limits = Limits::from(set);
        assert_eq!(limits.time, Duration::from_secs(7));
        assert_eq!(limits.silence, Limits::default().silence);
        assert_eq!(limits.bytes, Limits::default().bytes);
    }
}
