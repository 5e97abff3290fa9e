//! Attributes, by the names of OpenTelemetry's semantic conventions 1.43 where these have one, else under `flame_bpf.`.
//!
//! In: a profile's labels, mappings and kinds of frames. Out: keys and values. Nothing is said of what is not known.
//! The names: <https://opentelemetry.io/docs/specs/semconv/registry/attributes/>.

use super::super::sender::Sender;
use super::super::{Style, labels, value_types};
use crate::profile::{Activity, FrameKind, Labels, Mapping, Profile, Sample};
use opentelemetry_proto::tonic::common::v1::any_value::Value as WireValue;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue};

/// Keys, and the values of those that have one.
pub(super) type Attributes = Vec<(&'static str, Value)>;

/// Attribute of a key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Value {
    /// Stands for no value at all: that of the zero element.
    #[default]
    None,
    /// Any characters.
    Text(String),
    /// An ID or a count.
    Number(i64),
    /// A list.
    Texts(Vec<String>),
}

impl Value {
    /// A value of a message; none if it is none that we write.
    pub(super) fn of_message(value: Option<AnyValue>) -> Option<Self> {
        let Some(AnyValue { value: Some(value) }) = value else {
            return Some(Self::None);
        };
        match value {
            WireValue::StringValue(text) => Some(Self::Text(text)),
            WireValue::IntValue(number) => Some(Self::Number(number)),
            WireValue::ArrayValue(array) => {
                let texts = array.values.into_iter().map(|of| match of.value {
                    Some(WireValue::StringValue(text)) => Some(text),
                    _ => None,
                });
                Some(Self::Texts(texts.collect::<Option<_>>()?))
            }
            _ => None,
        }
    }
}

impl From<Value> for Option<AnyValue> {
    fn from(value: Value) -> Self {
        let any = |value| AnyValue { value: Some(value) };
        match value {
            Value::None => None,
            Value::Text(text) => Some(any(WireValue::StringValue(text))),
            Value::Number(number) => Some(any(WireValue::IntValue(number))),
            Value::Texts(texts) => {
                let texts = texts.into_iter().map(WireValue::StringValue);
                let values = texts.map(any).collect();
                Some(any(WireValue::ArrayValue(ArrayValue { values })))
            }
        }
    }
}

/// Known facts of a process and of its cgroup, and which input it is of where these are told apart.
pub(super) fn resource(process: &Labels) -> Vec<KeyValue> {
    let pid = process.pid.map(|pid| ("process.pid", id(pid)));
    let source = process.source.clone();
    let source = source.map(|source| ("flame_bpf.source", Value::Text(source)));
    let known = labels::of(process, process.process.as_deref()).into_iter();
    let known = known.map(|(name, text)| (name, Value::Text(text)));
    let all = pid.into_iter().chain(known).chain(source);
    all.map(|(name, value)| key_value(name.to_owned(), value))
        .collect()
}

/// The labels of what is sent.
pub(super) fn sent(labels: &[(String, String)]) -> Vec<KeyValue> {
    let labels = labels.iter();
    labels
        .map(|(name, text)| key_value(name.clone(), Value::Text(text.clone())))
        .collect()
}

fn key_value(key: String, value: Value) -> KeyValue {
    KeyValue {
        key,
        value: value.into(),
        key_strindex: 0,
    }
}

/// The number of a process, thread or CPU.
fn id(number: u32) -> Value {
    Value::Number(number.into())
}

/// How often the probe fired in a window that is sent, and what became of these firings.
pub(super) fn balance(sender: &Sender) -> Attributes {
    let count = |number| i64::try_from(number).ok().map(Value::Number);
    let [recorded, filtered, lost] = sender.firings;
    known([
        ("flame_bpf.firings.recorded", count(recorded)),
        ("flame_bpf.firings.filtered", count(filtered)),
        ("flame_bpf.firings.lost", count(lost)),
    ])
}

/// The headline and the balance.
pub(super) fn comment(style: &Style) -> Attributes {
    let lines = std::iter::once(style.title.as_str()).chain(style.notes.lines());
    let lines: Vec<String> = lines
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect();
    let comment = (!lines.is_empty()).then_some(Value::Texts(lines));
    known([("pprof.profile.comment", comment)])
}

/// Which build a mapping is of.
pub(super) fn build_id(mapping: &Mapping) -> Attributes {
    let hex = mapping.build_id_hex();
    let hex = (!hex.is_empty()).then_some(Value::Text(hex));
    known([("process.executable.build_id.gnu", hex)])
}

/// Maker of a frame's function; none of code that a runtime compiled, since nobody says which runtime.
pub(super) fn frame_type(kind: FrameKind) -> Attributes {
    let kind = match kind {
        FrameKind::Kernel => Some("kernel"),
        FrameKind::User | FrameKind::Inlined => Some("native"),
        FrameKind::Interpreted(runtime) => Some(runtime.frame_type()),
        FrameKind::Jit
        | FrameKind::Process
        | FrameKind::Label
        | FrameKind::Mark
        | FrameKind::State(_) => None,
    };
    let kind = kind.map(|kind| Value::Text(kind.to_owned()));
    known([("profile.frame.type", kind)])
}

/// The thread of a sample, what it did, and who ended its wait.
pub(super) fn sample(profile: &Profile, sample: &Sample) -> Attributes {
    let labels = profile.labels_at(sample.labels);
    let waker = sample.waker.map(|index| *profile.waker_at(index));
    let waker = waker.filter(|waker| !waker.interrupt);
    let waker = waker.map(|waker| profile.labels_at(waker.labels));
    let state = value_types::state(sample.thread_state);
    // Where all of them ran, it says nothing.
    let state = (profile.origin.activity != Activity::Running).then(|| state.to_owned());
    let comm = |labels: &Labels| labels.comm.clone().map(Value::Text);
    let pid = |labels: &Labels| labels.pid.map(id);
    let tid = |labels: &Labels| labels.tid.map(id);
    known([
        ("thread.name", comm(labels)),
        ("thread.id", tid(labels)),
        ("cpu.logical_number", labels.cpu.map(id)),
        ("flame_bpf.thread.state", state.map(Value::Text)),
        ("flame_bpf.waker.thread.name", waker.and_then(comm)),
        ("flame_bpf.waker.process.pid", waker.and_then(pid)),
        ("flame_bpf.waker.thread.id", waker.and_then(tid)),
    ])
}

/// Those that have a value.
fn known<const N: usize>(attributes: [(&'static str, Option<Value>); N]) -> Attributes {
    let known = attributes.into_iter();
    known
        .filter_map(|(key, value)| Some((key, value?)))
        .collect()
}
