//! Longer windows than were recorded.
//!
//! In: a profile, and how long its windows are to be. Out: the same samples, by fewer windows. Never: shorter ones.

use super::{Profile, WindowIndex, WindowTotals};
use std::time::Duration;

impl Profile {
    /// Puts windows together to such as are about so long, if they are shorter.
    pub fn widen_windows(&mut self, resolution: Duration) {
        let usual = WindowTotals::resolution(&self.windows);
        // Ends are not exact to the microsecond.
        let longest = resolution + usual / 2;
        let mut widened: Vec<WindowTotals> = Vec::new();
        let mut places = Vec::with_capacity(self.windows.len());
        for totals in &self.windows {
            match widened.last_mut() {
                Some(last) if totals.window.end.saturating_sub(last.window.start) <= longest => {
                    *last = last.and(*totals);
                }
                _ => widened.push(*totals),
            }
            places.push(WindowIndex(widened.len() as u32 - 1));
        }
        self.windows = widened;
        for sample in &mut self.samples {
            let place = places.get(sample.window.0 as usize).copied();
            sample.window = place.unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::fold;
    use crate::profile::{Sample, Unit};

    #[test]
    fn windows_are_put_together_to_longer_ones() {
        let read = fold::parse(b"a 1\nb 2\nc 3\nd 4\ne 5\n", Unit::Samples);
        let mut profile = read.expect("folded text");
        let samples: Vec<Sample> = profile.samples().to_vec();
        profile.clear();
        for (index, sample) in samples.into_iter().enumerate() {
            let window = WindowIndex(index as u32);
            profile.push(Sample { window, ..sample });
        }
        let length = Duration::from_micros(50_030);
        profile.windows = (0..5)
            .map(|index| WindowTotals {
                firings: 1,
                ..WindowTotals::nth(length, index)
            })
            .collect();
        assert_eq!(WindowTotals::resolution(&profile.windows), length);
        profile.widen_windows(Duration::from_millis(100));
        let places: Vec<u32> = profile
            .samples()
            .iter()
            .map(|sample| sample.window.0)
            .collect();
        assert_eq!(places, [0, 0, 1, 1, 2]);
        let firings: Vec<u64> = profile
            .windows
            .iter()
            .map(|totals| totals.firings)
            .collect();
        assert_eq!(firings, [2, 2, 1]);
        assert_eq!(profile.windows[2].window.end, length * 5);
    }
}
