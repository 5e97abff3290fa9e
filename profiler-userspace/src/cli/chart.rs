//! The flags of flame charts, and of the windows that time is divided into.
//!
//! In: nothing. Out: the flags, as clap reads them, their help, and what they do not go with.

use super::flags::LookArgs;
use super::value;
use crate::output::Format;
use crate::plan::Output;
use anyhow::{Result, bail, ensure};
use std::time::Duration;

/// The windows of a flame chart that is recorded, unless told otherwise.
const DEFAULT: Duration = Duration::from_millis(50);

/// Each window costs a drain.
const SHORTEST: Duration = Duration::from_millis(10);

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(super) struct ChartArgs {
    /// Draw flame charts: .svg and .html show time from left to right, in windows
    #[arg(long)]
    pub(super) flamechart: bool,
    /// Divide time into windows of 10ms, 1s ... [default: 20 to 40 windows; with --flamechart 50ms, or as recorded]
    #[arg(long, value_name = "DURATION", value_parser = resolution, allow_negative_numbers = true)]
    pub(super) resolution: Option<Duration>,
}

fn resolution(text: &str) -> Result<Duration, String> {
    match value::duration(text)? {
        short if short < SHORTEST => {
            Err("each window costs time and room; use 10ms or more".to_owned())
        }
        resolution => Ok(resolution),
    }
}

impl ChartArgs {
    /// How long windows are that are recorded; none for what is usual.
    pub(super) fn recorded(&self) -> Option<Duration> {
        self.resolution.or(self.flamechart.then_some(DEFAULT))
    }

    /// Refuses what cannot be drawn or divided.
    pub(super) fn check<'a>(
        &self,
        outputs: impl Iterator<Item = &'a Output> + Clone,
        look: &LookArgs,
    ) -> Result<()> {
        ensure!(
            !look.classic
                || outputs
                    .clone()
                    .any(|output| output.format() == Some(Format::SVG)),
            "--classic draws .svg, and none is written; add -o flamegraph.svg"
        );
        if self.flamechart {
            let is_chart = |format: Option<Format>| format.is_none_or(Format::can_be_chart);
            if let Some(other) = outputs.clone().find(|output| !is_chart(output.format())) {
                bail!(
                    "--flamechart draws .svg and .html, and {} is neither; write a chart with -o chart.svg, and the rest \
                     without --flamechart",
                    other.name()
                );
            }
            ensure!(
                outputs.clone().any(|output| output.format().is_some()),
                "--flamechart draws a chart, and a raw recording is none; leave it out, give --resolution, and draw with \
                 `flame-bpf render --flamechart`"
            );
            ensure!(
                !look.reverse,
                "--reverse merges stacks whenever they were, and --flamechart shows when; keep one of them"
            );
            ensure!(
                !look.classic,
                "--classic draws no time, and --flamechart does; keep one of them"
            );
        }
        ensure!(
            self.flamechart
                || self.resolution.is_none()
                || outputs.clone().any(Output::has_windows),
            "--resolution divides time, and no output tells of it; add --flamechart, or write .html, .json.gz, .json or .fbpf"
        );
        Ok(())
    }
}
