//! A program that never was, and recordings of it.
//!
//! In: a kind of program and a seed. Out: samples by function and window, the same for the same seed.

use fastrand::Rng;
use std::f64::consts::TAU;

const HZ: f64 = 997.0;
pub(super) const SECONDS: f64 = 20.0;
pub(super) const WINDOWS: usize = 40;
pub(super) const LEAVES: usize = 60;
pub(super) const FRAMES: usize = LEAVES + 20;
pub(super) const KINDS: usize = 8;
/// How long a mix of kinds is the same.
const STEP: f64 = 0.25;

/// A kind of program; times in seconds.
#[derive(Clone, Copy)]
pub(super) struct Program {
    pub(super) name: &'static str,
    /// Each sample is drawn on its own.
    independent: bool,
    stay: f64,
    request: f64,
    threads: usize,
    /// How far the mix drifts, and how fast.
    drift: (f64, f64),
    idle: f64,
    collects: bool,
}

pub(super) const PLAIN: Program = Program {
    name: "stays 5 ms, requests 50 ms",
    independent: false,
    stay: 0.005,
    request: 0.05,
    threads: 1,
    drift: (0.0, 1.0),
    idle: 0.0,
    collects: false,
};

pub(super) const INDEPENDENT: Program = Program {
    name: "independent samples",
    independent: true,
    ..PLAIN
};

pub(super) const SHORT: Program = Program {
    name: "stays 0.2 ms, requests 5 ms",
    stay: 0.0002,
    request: 0.005,
    ..PLAIN
};

pub(super) const PROGRAMS: [Program; 9] = [
    INDEPENDENT,
    SHORT,
    PLAIN,
    Program {
        name: "stays 20 ms, requests 500 ms",
        stay: 0.02,
        request: 0.5,
        ..PLAIN
    },
    Program {
        name: "mix drifts over 5 s",
        drift: (0.4, 5.0),
        ..PLAIN
    },
    Program {
        name: "mix drifts over 1 s",
        drift: (0.6, 1.0),
        ..PLAIN
    },
    Program {
        name: "0.3 s of collection each 3 s",
        collects: true,
        ..PLAIN
    },
    Program {
        name: "busy one fifth of the time",
        idle: 0.2,
        ..PLAIN
    },
    Program {
        name: "four threads, requests 200 ms",
        stay: 0.01,
        request: 0.2,
        threads: 4,
        ..PLAIN
    },
];

/// Draws from distributions.
pub(super) struct Chance(Rng);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(Rng::with_seed(seed))
    }

    pub(super) fn uniform(&mut self) -> f64 {
        self.0.f64()
    }

    pub(super) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (TAU * self.uniform()).cos()
    }

    pub(super) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.uniform()).ln()
    }

    /// Shares that sum to one; the smaller `alpha`, the less alike they are.
    fn dirichlet<const N: usize>(&mut self, alpha: f64) -> [f64; N] {
        let gammas: [f64; N] = std::array::from_fn(|_| self.gamma(alpha));
        let sum: f64 = gammas.iter().sum();
        gammas.map(|gamma| gamma / sum)
    }

    /// After Marsaglia and Tsang.
    fn gamma(&mut self, alpha: f64) -> f64 {
        if alpha < 1.0 {
            let power = self.uniform().powf(1.0 / alpha);
            return self.gamma(alpha + 1.0) * power;
        }
        let d = alpha - 1.0 / 3.0;
        loop {
            let x = self.normal();
            let v = (1.0 + x / (9.0 * d).sqrt()).powi(3);
            if v > 0.0 && (1.0 - self.uniform()).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }
}

pub(super) type Mix = [[f64; LEAVES]; KINDS];

/// Where each kind of request spends its time, and how frequent each is.
pub(super) fn world() -> (Mix, [f64; KINDS]) {
    let mut chance = Chance::new(1);
    let common: [f64; LEAVES] = chance.dirichlet(0.6);
    let mut mix: Mix = std::array::from_fn(|_| chance.dirichlet(0.25));
    for kind in &mut mix {
        for (share, common) in kind.iter_mut().zip(common) {
            *share = 0.7 * *share + 0.3 * common;
        }
    }
    (mix, chance.dirichlet(2.0))
}

fn cumulative<const N: usize>(shares: &[f64; N]) -> [f64; N] {
    let mut sum = 0.0;
    shares.map(|share| {
        sum += share;
        sum
    })
}

/// The place of the first sum that is larger.
fn pick(cumulative: &[f64], uniform: f64) -> usize {
    cumulative
        .partition_point(|sum| *sum <= uniform)
        .min(cumulative.len() - 1)
}

/// A recording: samples by leaf and window.
pub(super) type Recording = Vec<[f64; WINDOWS]>;

pub(super) fn record(
    chance: &mut Chance,
    program: &Program,
    mix: &Mix,
    kinds: &[f64; KINDS],
) -> Recording {
    let mut counts = vec![[0.0; WINDOWS]; LEAVES];
    let mixes = mix.map(|kind| cumulative(&kind));
    let steps = (SECONDS / STEP) as usize + 1;
    let (sigma, tau) = program.drift;
    let mut drifts = [[0.0; KINDS]; 81];
    if sigma > 0.0 {
        let keeps = (-STEP / tau).exp();
        for kind in 0..KINDS {
            let mut now = sigma * chance.normal();
            for step in drifts.iter_mut().take(steps) {
                step[kind] = now;
                now = keeps * now + sigma * (1.0 - keeps * keeps).sqrt() * chance.normal();
            }
        }
    }
    let shares: Vec<[f64; KINDS]> = drifts
        .iter()
        .map(|drift| {
            let weights: [f64; KINDS] = std::array::from_fn(|kind| kinds[kind] * drift[kind].exp());
            let sum: f64 = weights.iter().sum();
            cumulative(&weights.map(|weight| weight / sum))
        })
        .collect();
    for _ in 0..program.threads {
        let phase = chance.uniform() * 3.0;
        let mut at = chance.uniform() / HZ;
        let (mut begins, mut ends, mut kind) = (0.0, 0.0, 0);
        let (mut stays, mut leaf) = (0.0, 0);
        while at < SECONDS {
            if program.independent {
                kind = pick(&shares[0], chance.uniform());
                leaf = pick(&mixes[kind], chance.uniform());
                begins = 0.0;
            } else {
                while ends <= at {
                    begins = ends
                        + if program.idle > 0.0 {
                            chance.exponential(program.idle)
                        } else {
                            0.0
                        };
                    let lasts = program.request.ln() - 0.5 * 0.49 + 0.7 * chance.normal();
                    ends = begins + lasts.exp();
                    let step = ((begins / STEP) as usize).min(steps - 1);
                    kind = pick(&shares[step], chance.uniform());
                    // A new request is another function.
                    stays = begins;
                }
                while stays <= at {
                    stays += chance.exponential(program.stay);
                    leaf = pick(&mixes[kind], chance.uniform());
                }
            }
            if at >= begins {
                let window = ((at / SECONDS * WINDOWS as f64) as usize).min(WINDOWS - 1);
                let collects = program.collects && (at + phase) % 3.0 < 0.3;
                counts[if collects { 0 } else { leaf }][window] += 1.0;
            }
            at += 1.0 / HZ;
        }
    }
    counts
}

/// All frames: leaves, 15 that call four of them each, and 5 that call twelve.
pub(super) fn frames(leaves: &Recording) -> Recording {
    let mut frames = leaves.clone();
    for each in [4, 12] {
        for callees in leaves.chunks(each) {
            let sum = std::array::from_fn(|window| callees.iter().map(|leaf| leaf[window]).sum());
            frames.push(sum);
        }
    }
    assert_eq!(frames.len(), FRAMES);
    frames
}
