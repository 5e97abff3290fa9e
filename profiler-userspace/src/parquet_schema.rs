//! The table of Parquet files: its columns, and the facts beside it. `docs/internals/parquet.md` is the same for readers.
//!
//! Constants and plain data, for the writer and the reader. Never: a row.

use serde_json::{Value, json};

/// The columns, in Parquet's own language.
pub(crate) const MESSAGE: &str = "
message samples {
  optional int64 time (TIMESTAMP(NANOS, true));
  required int64 duration_ns;
  optional binary host (STRING);
  required binary event (STRING);
  required binary unit (STRING);
  required binary outcome (STRING);
  optional binary cgroup (STRING);
  optional binary systemd_unit (STRING);
  optional binary container (STRING);
  optional binary container_id (STRING);
  optional binary pod (STRING);
  optional binary pod_uid (STRING);
  optional binary service (STRING);
  optional binary source (STRING);
  optional binary process (STRING);
  optional binary thread (STRING);
  optional int64 pid;
  optional int64 tid;
  optional int64 cpu;
  optional binary state (STRING);
  required group stack (LIST) {
    repeated group list {
      required group element {
        required binary function (STRING);
        optional binary module (STRING);
        optional binary build_id (STRING);
        required binary kind (STRING);
        optional binary file (STRING);
        optional int64 line;
      }
    }
  }
  required int64 count;
  required int64 value;
}";

/// Where frames are, as the beginning of their columns' names.
pub(crate) const FRAME: &str = "stack.list.element.";

/// Outcomes of firings, as rows have them.
pub(crate) mod outcome {
    /// Of a sample.
    pub(crate) const RECORDED: &str = "recorded";
    /// Not wanted when it fired.
    pub(crate) const FILTERED: &str = "filtered";
    /// Wanted, and in no sample.
    pub(crate) const LOST: &str = "lost";
    /// Recorded, and not in this file: not selected when it was made, or missing from what it was made of.
    pub(crate) const LEFT_OUT: &str = "left out";
}

/// The key of the facts in the file's metadata.
pub(crate) const KEY: &str = "flame-bpf";

/// The number of the format, which rises when a reader has to change.
const FORMAT: u64 = 1;

/// Facts about a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The program that wrote it.
    pub(crate) writer: String,
    /// The kernel's release.
    pub(crate) kernel: Option<String>,
    /// Files that it was made of; empty if nobody will ask.
    pub(crate) made_of: Vec<String>,
    /// Its events, the usual one first.
    pub(crate) events: Vec<EventFacts>,
}

/// Facts about an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventFacts {
    /// Its name, as in the column.
    pub(crate) name: String,
    /// The title that its graph would have.
    pub(crate) title: String,
    /// Activity of the threads: `running`, `waiting` or `both`.
    pub(crate) threads: String,
    /// How much time of a CPU a sample stands for, in nanoseconds.
    pub(crate) period_ns: Option<u64>,
    /// Summary of the recording, by lines.
    pub(crate) balance: Vec<String>,
}

impl Facts {
    /// The facts as text.
    pub(crate) fn text(&self) -> String {
        let events = self.events.iter().map(|event| {
            json!({
                "event": event.name,
                "title": event.title,
                "threads": event.threads,
                "period_ns": event.period_ns,
                "balance": event.balance,
            })
        });
        json!({
            "format": FORMAT,
            "writer": self.writer,
            "kernel": self.kernel,
            "made_of": self.made_of,
            "events": events.collect::<Vec<_>>(),
        })
        .to_string()
    }

    /// The facts in a text; none if it holds none, or those of a format that is not known.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let texts = |value: &Value| -> Vec<String> {
            let all = value.as_array().map_or(&[][..], Vec::as_slice);
            all.iter().filter_map(text).collect()
        };
        let event = |value: &Value| {
            Some(EventFacts {
                name: text(&value["event"])?,
                title: text(&value["title"]).unwrap_or_default(),
                threads: text(&value["threads"]).unwrap_or_default(),
                period_ns: value["period_ns"].as_u64(),
                balance: texts(&value["balance"]),
            })
        };
        (value["format"].as_u64() == Some(FORMAT)).then(|| Self {
            writer: text(&value["writer"]).unwrap_or_default(),
            kernel: text(&value["kernel"]),
            made_of: texts(&value["made_of"]),
            events: (value["events"].as_array())
                .map_or(&[][..], Vec::as_slice)
                .iter()
                .filter_map(event)
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_come_back_as_they_were() {
        let facts = Facts {
            writer: "flame-bpf 1".to_owned(),
            kernel: None,
            made_of: vec!["a \"b\".fbpf".to_owned()],
            events: vec![EventFacts {
                name: "cpu-clock".to_owned(),
                title: "all\nof it".to_owned(),
                threads: "running".to_owned(),
                period_ns: Some(52_631_578),
                balance: vec!["recorded: 1 sample".to_owned()],
            }],
        };
        assert_eq!(Facts::read(&facts.text()), Some(facts));
        for other in ["", "1", "{}", "{\"format\":2}", "[[[["] {
            assert_eq!(Facts::read(other), None, "{other}");
        }
    }
}
