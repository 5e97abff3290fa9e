//! One level of a stack, as it reads.
//!
//! In: names. Out: plain values. Never knows where a frame comes from.

use profiler_common::abi::ThreadState;
use profiler_common::runtime::RuntimeKind;

/// Kind of one level of a stack. Decides annotations, colours, and where the delimiter goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FrameKind {
    /// The process's `comm`, at the root.
    Process,
    /// A label that the user asked for with `--per-thread` or `--per-cpu`, beside the process.
    Label,
    /// A function of the program or its libraries.
    User,
    /// A function that a runtime compiled while the program ran.
    Jit,
    /// A function that an interpreter runs.
    Interpreted(RuntimeKind),
    /// A function that was compiled into the one below it, and has no frame of its own in memory.
    Inlined,
    /// A function of the kernel.
    Kernel,
    /// A synthetic frame that says what the walk could not, such as `[truncated]`.
    Mark,
    /// A synthetic frame at the leaf that says what the thread did, or waited for.
    State(ThreadState),
}

/// One level of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frame {
    /// The function's demangled name, or `[module+0xoffset]`. Any characters at all: it is the
    /// output's business to escape what its format cannot hold.
    pub name: String,
    /// Kind of this level.
    pub kind: FrameKind,
}

/// One level of a stack, whose name is kept elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameRef<'a> {
    /// As [`Frame::name`].
    pub name: &'a str,
    /// Kind of this level.
    pub kind: FrameKind,
}

impl FrameKind {
    /// Whether this is code of the program's side, however it was made.
    pub fn is_user(self) -> bool {
        matches!(
            self,
            Self::User | Self::Jit | Self::Interpreted(_) | Self::Inlined
        )
    }

    /// Whether this is a function of a program that a runtime runs, interpreted or compiled.
    pub fn is_of_runtime(self) -> bool {
        matches!(self, Self::Jit | Self::Interpreted(_))
    }

    /// Whether it is one, where the frame that called it is one or not: what was inlined is what it was inlined into.
    pub fn is_of_runtime_within(self, of_caller: bool) -> bool {
        self.is_of_runtime() || (of_caller && self == Self::Inlined)
    }

    /// The short name of a kind that a name does not tell by itself: `k`, `j`, `i`, or that of a runtime's language.
    pub const fn short(self) -> Option<&'static str> {
        match self {
            Self::Kernel => Some("k"),
            Self::Jit => Some("j"),
            Self::Inlined => Some("i"),
            Self::Interpreted(runtime) => Some(runtime.short()),
            Self::Process | Self::Label | Self::User | Self::Mark | Self::State(_) => None,
        }
    }

    /// Its kind, in a word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Label => "label",
            Self::User => "user",
            Self::Jit => "jit",
            Self::Interpreted(_) => "runtime",
            Self::Inlined => "inlined",
            Self::Kernel => "kernel",
            Self::Mark => "mark",
            Self::State(_) => "state",
        }
    }

    /// The kind with this short name.
    pub fn from_short(short: &str) -> Option<Self> {
        let runtimes = RuntimeKind::ALL.into_iter().map(Self::Interpreted);
        let mut all = [Self::Kernel, Self::Jit, Self::Inlined]
            .into_iter()
            .chain(runtimes);
        all.find(|kind| kind.short() == Some(short))
    }

    /// A name with the kind's short name behind it: `work [py]`.
    pub fn annotate(self, name: &str) -> String {
        match self.short() {
            Some(short) => format!("{name} [{short}]"),
            None => name.to_owned(),
        }
    }

    /// The module of code that is in no file, and has no source.
    pub fn module_without_file(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Interpreted(runtime) => runtime.short(),
            _ => "",
        }
    }
}

impl Frame {
    /// The label of one thread, for `--per-thread`, with its name where that is not its process's. [`super::fold::parse`]
    /// knows it by its shape.
    pub fn thread(tid: u32, name: Option<&str>) -> Self {
        let label = match name {
            // A bracket in the name would end the label, or make it a function with an annotation.
            Some(name) if !name.is_empty() => {
                let name = name.replace('[', "(").replace(']', ")");
                format!("[tid {tid} {name}]")
            }
            _ => format!("[tid {tid}]"),
        };
        Self::new(label, FrameKind::Label)
    }

    /// The label of one CPU, for `--per-cpu`. [`super::fold::parse`] knows it by its shape.
    pub fn cpu(cpu: u32) -> Self {
        Self::new(format!("[cpu {cpu}]"), FrameKind::Label)
    }

    /// A frame with this name.
    pub fn new(name: impl Into<String>, kind: FrameKind) -> Self {
        let name = name.into();
        Self { name, kind }
    }
}

/// The module of a function that a runtime runs: of Java its package, of others its file, with the directory where many
/// files are called the same.
pub fn interpreted_module<'a>(runtime: RuntimeKind, name: &'a str, file: &'a str) -> &'a str {
    if runtime == RuntimeKind::HotSpot
        && let Some(package) = java_package(name)
    {
        return package;
    }
    const SAME: [&str; 5] = [
        "__init__.py",
        "__main__.py",
        "index.js",
        "index.mjs",
        "init.lua",
    ];
    let mut parts = file.rmatch_indices('/').map(|(at, _)| at + 1);
    let last = parts.next().unwrap_or(0);
    match &file[last..] {
        "" => runtime.short(),
        // Parts of Node itself, whose files have no directories.
        _ if file.starts_with("node:") => file,
        same if SAME.contains(&same) && last > 0 => &file[parts.next().unwrap_or(0)..],
        file => file,
    }
}

/// The package of a method, `java.util` of `java.util.HashMap.resize`; none if it has none.
fn java_package(method: &str) -> Option<&str> {
    let method = method.split('(').next()?;
    // Dollars are of methods, too: `a.B.lambda$main$0`.
    let (class, _) = method.rsplit_once('.')?;
    // Classes within a class, and those made while it ran: `a.B$C.d`, `a.B$$Lambda/0x12.d`.
    let class = class.split(['$', '/', '<']).next()?;
    Some(class.rsplit_once('.')?.0)
}

/// The number in the label of a thread, and the name if there is one.
pub(super) fn thread_label(label: &str) -> Option<(&str, Option<&str>)> {
    let inside = label.strip_prefix("[tid ")?.strip_suffix(']')?;
    match inside.split_once(' ') {
        Some((_, "")) => None,
        Some((_, name)) if name.contains(['[', ']']) => None,
        Some((digits, name)) => Some((digits, Some(name))),
        None => Some((inside, None)),
    }
}

/// The number in the label of a CPU.
pub(super) fn cpu_label(label: &str) -> Option<&str> {
    label.strip_prefix("[cpu ")?.strip_suffix(']')
}

/// Whether the name is that of a synthetic frame. `[module+0x1f]` is a place in a program, and so not.
pub(crate) fn is_mark(name: &str) -> bool {
    name.starts_with('[') && name.ends_with(']') && !name.contains("+0x")
}
/// Where the kernel part begins, marks included, in a stack that has user frames before it.
pub(crate) fn kernel_part<T>(stack: &[T], kind: impl Fn(&T) -> FrameKind) -> Option<usize> {
    let kernel = stack
        .iter()
        .position(|frame| kind(frame) == FrameKind::Kernel)?;
    let user = stack[..kernel]
        .iter()
        .rposition(|frame| kind(frame).is_user())?;
    Some(user + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_of_java_lie_in_their_package() {
        for (method, package) in [
            ("java.util.HashMap.resize", "java.util"),
            ("com.shop.Cart$Line.price", "com.shop"),
            ("com.shop.Cart.<init>", "com.shop"),
            ("com.shop.Cart.lambda$main$0", "com.shop"),
            ("com.shop.Cart$$Lambda$1.call", "com.shop"),
            ("com.shop.Cart$$Lambda/0x7f12.call", "com.shop"),
            ("com.shop.Cart.add(java.lang.String)", "com.shop"),
        ] {
            let module = interpreted_module(RuntimeKind::HotSpot, method, "Cart.java");
            assert_eq!(module, package, "{method}");
        }
        for method in ["Shares.burn", "StubRoutines (1)", "call_stub"] {
            assert_eq!(java_package(method), None, "{method}");
        }
    }
}
