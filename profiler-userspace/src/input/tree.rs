//! Call trees that tools print: a function to a line, and below it, further in, what it calls.
//!
//! In: text of macOS's `sample`, VTune, Visual Studio or GHC. Out: a profile. A line that is none of the tree's is left
//! out, and so is what lies further in than it can, and both are counted, with the first line's number. Where such a line
//! says how far in it stands, what lies below it stays below a frame without a name.

use super::text::{Lines, Summed, one_type, rust_name};
use super::{Error, Head, ReadOptions, Reading};
use crate::profile::{Frame, FrameKind, Unit};
use crate::text::lines::LineReader;
use std::borrow::Cow;
use std::io::BufRead;

/// How a tool writes a tree.
pub(super) struct Format {
    /// Whether the tree begins below a line.
    begins: fn(&str) -> bool,
    /// How the tree's last line begins; none where it goes on to the end of the file.
    end: Option<&'static str>,
    /// Reads a line that is not empty, given the one that the tree begins below.
    line: fn(&str, &str) -> Line,
    /// Whether a line counts what is below it as well.
    is_total: bool,
    /// Functions that a thread waits in, which are left out.
    waits: &'static [&'static str],
    /// Unit of the numbers, where the file says it.
    unit: Option<&'static str>,
    /// A line as it should be.
    expected: &'static str,
}

/// A line, by how far in it stands: 1 for a root.
enum Line {
    Function(usize, String, u64),
    /// One that is broken, and still shows that it is of the tree.
    Broken(usize),
    /// One of which nothing is known.
    Odd,
}

/// Output of macOS's `sample`.
pub(super) static SAMPLE: Format = Format {
    begins: |line| line.starts_with("Call graph:"),
    end: Some("Total number in stack"),
    line: |_, line| sample(line),
    is_total: true,
    waits: &[
        "__psynch_cvwait",
        "__select",
        "__semwait_signal",
        "__ulock_wait",
        "__wait4",
        "__workq_kernreturn",
        "kevent",
        "mach_msg_trap",
        "read",
        "semaphore_wait_trap",
    ],
    unit: None,
    expected: "a function such as `    + 5130 start_wqthread  (in libsystem_pthread.dylib)`",
};

/// CSV of VTune's, `-report top-down -call-stack-mode all -column="CPU Time:Self","Module"`.
pub(super) static VTUNE: Format = Format {
    begins: |line| line.starts_with("Function Stack,CPU Time:Self,Module"),
    end: None,
    line: |_, line| vtune(line),
    is_total: false,
    waits: &[],
    unit: Some("ms"),
    expected: "a function such as ` work,0.5,app`",
};

/// CSV of Visual Studio's call trees.
pub(super) static VSPROF: Format = Format {
    begins: |line| {
        line.starts_with("Level,Function Name,Number of Calls,Elapsed Inclusive Time %,")
    },
    end: None,
    line: |_, line| vsprof(line),
    is_total: true,
    waits: &[],
    unit: Some("calls"),
    expected: "a function such as `2,\"work\",4,0.00,0.00,0.00,0.00,\"app\",`",
};

/// The `.prof` of a Haskell program.
pub(super) static GHCPROF: Format = Format {
    begins: |line| {
        let columns = [
            "COST", "CENTRE", "MODULE", "SRC", "no.", "entries", "%time", "%alloc", "%time",
            "%alloc",
        ];
        (line.split_whitespace().take(columns.len())).eq(columns)
    },
    end: None,
    line: ghcprof,
    is_total: false,
    waits: &[],
    unit: Some("‰ of time"),
    expected: "a cost centre, with columns below those of the title",
};

impl Format {
    /// Whether a file has such a tree.
    pub(super) fn looks_so(&self, head: &Head<'_>) -> bool {
        !head.is_binary && head.text.lines().any(self.begins)
    }

    /// The profile in the tree.
    pub(super) fn read(
        &self,
        from: &mut dyn BufRead,
        options: &ReadOptions<'_>,
    ) -> Result<Reading, Error> {
        one_type(options)?;
        let unit = match self.unit {
            Some(unit) => Unit::Events(unit.to_owned()),
            None => options.unit.clone(),
        };
        let options = ReadOptions {
            unit: unit.clone(),
            ..ReadOptions::ALL
        };
        let mut tree = Tree {
            format: self,
            options,
            stack: Vec::new(),
            open: Vec::new(),
            waited: 0,
            summed: Summed::new(unit),
        };
        let (mut title, mut has_ended, mut last) = (None, self.end.is_none(), 0);
        let mut odd = Lines::default();
        let mut lines = LineReader::new(from);
        while let Some((number, text)) = lines.next()? {
            last = number;
            let text = text.trim_end();
            let Some(title) = &title else {
                title = (self.begins)(text).then(|| text.to_owned());
                continue;
            };
            if text.is_empty() {
                continue;
            }
            if self.end.is_some_and(|end| text.starts_with(end)) {
                has_ended = true;
                break;
            }
            match (self.line)(title, text) {
                Line::Function(depth, name, shown) => {
                    let weight = tree.options.unit.read(shown);
                    if !tree.push(number, depth, Some(name).zip(weight))? || weight.is_none() {
                        odd.add(number, text);
                    }
                }
                Line::Broken(depth) => {
                    tree.push(number, depth, None)?;
                    odd.add(number, text);
                }
                Line::Odd => odd.add(number, text),
            }
        }
        tree.close(last, 0)?;
        let cut = (!has_ended).then_some((last, "the file ends within the call tree"));
        let what = "lines that are none of the call tree's";
        let reading = tree.summed.into_reading();
        let mut reading = reading.leave_out(&odd, what, self.expected, cut)?;
        if tree.waited > 0 {
            let unit = &tree.options.unit;
            let (waited, noun) = (unit.shown(tree.waited), unit.noun());
            let told = format!("{waited} {noun} in which threads waited");
            reading.notes.push(("not shown", told));
        }
        Ok(reading)
    }
}

/// A tree that is read up to a line.
struct Tree<'a> {
    format: &'a Format,
    options: ReadOptions<'static>,
    /// Functions from the root to the last line.
    stack: Vec<Frame>,
    /// Of each of these, what it counts without what was below it so far; none if its line is broken.
    open: Vec<Option<u64>>,
    /// How much was counted in functions in which threads wait.
    waited: u64,
    summed: Summed,
}

impl Tree<'_> {
    /// Adds a function, or the place of one whose line is broken. Returns whether it has a place.
    fn push(
        &mut self,
        line: usize,
        depth: usize,
        function: Option<(String, u64)>,
    ) -> Result<bool, Error> {
        if depth == 0 || depth > self.stack.len() + 1 {
            return Ok(false);
        }
        self.close(line, depth - 1)?;
        let (name, weight) = function.unzip();
        if self.format.is_total
            && let Some(caller) = self.open.iter_mut().rev().find_map(Option::as_mut)
        {
            *caller = caller.saturating_sub(weight.unwrap_or_default());
        }
        self.stack.push(Frame::new(
            name.unwrap_or_else(|| "[unknown]".to_owned()),
            FrameKind::User,
        ));
        self.open.push(weight);
        Ok(true)
    }

    /// Ends all functions but the `depth` outermost.
    fn close(&mut self, line: usize, depth: usize) -> Result<(), Error> {
        while self.stack.len() > depth {
            let weight = self.open.pop().flatten().unwrap_or_default();
            let function = self.stack.last().map_or("", |frame| &frame.name);
            let function = function.rsplit('`').next().unwrap_or_default();
            if self.format.waits.contains(&function) {
                self.waited = self.waited.saturating_add(weight);
            } else if weight > 0 {
                let counted = (weight, self.options.count(weight));
                self.summed.push(line, &self.stack, counted)?;
            }
            self.stack.pop();
        }
        Ok(())
    }
}

/// A function, and the module that it is in.
fn named(module: &str, function: &str) -> String {
    match module {
        "" => function.to_owned(),
        module => format!("{module}`{function}"),
    }
}

/// Reads `    + ! 4282 __doworkq_kernreturn  (in libsystem_kernel.dylib) + 10  [0x7fff737cf3d5]`, with two characters in
/// front for each call.
fn sample(line: &str) -> Line {
    let Some(inner) = line.strip_prefix("    ") else {
        return Line::Odd;
    };
    let text = inner.trim_start_matches([' ', '+', '|', ':', '!']);
    let indent = inner.len() - text.len();
    if indent % 2 != 0 {
        return Line::Odd;
    }
    let depth = indent / 2 + 1;
    let parsed = text.split_once(' ').and_then(|(samples, rest)| {
        let (function, behind) = match rest.rsplit_once("(in ") {
            Some((function, behind)) => (function, behind),
            None => (rest, ""),
        };
        let module = behind.split_once(')').map_or("", |(module, _)| module);
        let module = module.strip_suffix(".dylib").unwrap_or(module);
        let function = function.trim();
        let function = match function.split_once('(') {
            Some((name, _)) if !name.is_empty() => name.trim_end(),
            _ => function,
        };
        Some((named(module, &rust_name(function)), samples.parse().ok()?))
    });
    match parsed {
        Some((name, samples)) => Line::Function(depth, name, samples),
        None => Line::Broken(depth),
    }
}

/// Reads ` "std::map<int, int>::at",0.5,app`: function, seconds, module, with a space in front for each call.
fn vtune(line: &str) -> Line {
    let text = line.trim_start_matches(' ');
    let depth = line.len() - text.len() + 1;
    let parsed = field(text).and_then(|(function, rest)| {
        let (seconds, module) = rest?.split_once(',')?;
        let seconds: f64 = seconds.parse().ok()?;
        Some((named(module, &function), whole(seconds * 1e3)?))
    });
    match parsed {
        Some((name, milliseconds)) => Line::Function(depth, name, milliseconds),
        // Remarks stand as far out as roots.
        None if depth == 1 && text.matches(',').count() != 2 => Line::Odd,
        None => Line::Broken(depth),
    }
}

/// Reads `6,"System.String.IsNullOrEmpty(string)","2,893",0.00,0.00,0.00,0.00,"mscorlib.dll",`: level, function, calls.
fn vsprof(line: &str) -> Line {
    let level = field(line).and_then(|(level, rest)| Some((count(&level)?, rest)));
    let Some((level, rest)) = level else {
        return Line::Odd;
    };
    let depth = usize::try_from(level).unwrap_or(usize::MAX);
    let function = rest.filter(|rest| rest.starts_with('"')).and_then(field);
    let calls = function.and_then(|(function, rest)| {
        let (calls, _) = field(rest?)?;
        Some((function.into_owned(), count(&calls)?))
    });
    match calls {
        Some((function, calls)) => Line::Function(depth, function, calls),
        None => Line::Broken(depth),
    }
}

/// Reads a cost centre, with a space in front for each call. Its columns are those of the title.
fn ghcprof(title: &str, line: &str) -> Line {
    let depth = line.len() - line.trim_start_matches(' ').len() + 1;
    let word = |column: &str| {
        let at = title.find(column).unwrap_or_default();
        // Names may have letters of several bytes, each of which takes one column.
        let rest = line.char_indices().nth(at).map(|(at, _)| &line[at..]);
        rest.and_then(|rest| rest.split_whitespace().next())
    };
    let permille = word("%time").and_then(|percent| percent.parse::<f64>().ok());
    match (
        word("COST"),
        word("MODULE"),
        permille.and_then(|it| whole(it * 10.0)),
    ) {
        (Some(centre), Some(module), Some(permille)) => {
            Line::Function(depth, format!("{module}.{centre}"), permille)
        }
        // All that is called is further in than the one root.
        _ if depth == 1 && !line.starts_with("MAIN") => Line::Odd,
        _ => Line::Broken(depth),
    }
}

/// A number to the nearest whole one, if a weight can be that.
fn whole(number: f64) -> Option<u64> {
    let number = number.round();
    // 2^63 is a number of both kinds.
    (0.0..9_223_372_036_854_775_808.0)
        .contains(&number)
        .then_some(number as u64)
}

/// The first field of a line of CSV, and the others.
fn field(line: &str) -> Option<(Cow<'_, str>, Option<&str>)> {
    let Some(quoted) = line.strip_prefix('"') else {
        return Some(match line.split_once(',') {
            Some((field, rest)) => (Cow::Borrowed(field), Some(rest)),
            None => (Cow::Borrowed(line), None),
        });
    };
    let mut from = 0;
    loop {
        let end = from + quoted[from..].find('"')?;
        let rest = &quoted[end + 1..];
        if rest.starts_with('"') {
            from = end + 2;
            continue;
        }
        let field = match quoted[..end].contains('"') {
            true => Cow::Owned(quoted[..end].replace("\"\"", "\"")),
            false => Cow::Borrowed(&quoted[..end]),
        };
        return match rest.strip_prefix(',') {
            Some(rest) => Some((field, Some(rest))),
            None => rest.is_empty().then_some((field, None)),
        };
    }
}

/// A number that may have a mark between each three of its digits: `2,893,824`.
fn count(text: &str) -> Option<u64> {
    let mark = text
        .find([',', '.', ' '])
        .map(|at| text.as_bytes()[at] as char);
    let Some(mark) = mark else {
        return text.parse().ok();
    };
    let mut groups = text.split(mark);
    let first = groups
        .next()
        .is_some_and(|first| (1..=3).contains(&first.len()));
    let is_marked = first && groups.all(|group| group.len() == 3);
    let digits = text.replace(mark, "");
    is_marked.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{kind_and_text, notes, refused};

    /// A file of each format: what begins it, its tree without the last line, folded text, and lines that are odd in it.
    const FILES: [(&str, &str, &str, &str, &[&str]); 4] = [
        (
            "macOS sample output",
            "Analysis of sampling app (pid 7) every 1 millisecond\nProcess:         app [7]\nCall graph:\n",
            "    9 Thread_1: main\n    + 9 start  (in dyld) + 3  [0x1]\n    +   6 main  (in app) + 3  [0x2]\n    +   ! 4 \
             -[A b:]  (in libapp.dylib) + 3  [0x3]\n    +   ! 2 app::_$LT$a..B$GT$::f::h30ecedc997ad7e32  (in app) + 3  [0x4]\n    +   \
             3 mach_msg_trap  (in libsystem_kernel.dylib) + 3  [0x5]\n    7 Thread_2\n      5 png_read(int)  (in app) + 3  [0x6]\n",
            "Thread_1: main;dyld`start;app`main;app`app::<a::B>::f 2\nThread_1: main;dyld`start;app`main;libapp`-[A b:] 4\n\
             Thread_2 2\nThread_2;app`png_read 5\n",
            &[
                "sample[7]: note",
                "    +  3 odd  (in app)",
                "                    + 3 deep  (in app)",
            ],
        ),
        (
            "VTune CSV",
            "vtune: Using result path `r000hs'\nFunction Stack,CPU Time:Self,Module\n",
            "main,0,app\n work,0.5,app\n  \"at<int, int>\",0.25,libm.so\n work,0.1,app\n  leaf,1.0,\n",
            "app`main;app`work 600\napp`main;app`work;leaf 1000\napp`main;app`work;libm.so`at<int, int> 250\n",
            &["vtune: Warning: a", "     deep,1,app"],
        ),
        (
            "Visual Studio CSV",
            "Level,Function Name,Number of Calls,Elapsed Inclusive Time %,Elapsed Exclusive Time %,Avg Elapsed Inclusive Time,\
             Avg Elapsed Exclusive Time,Module Name,\n",
            "1,\"A.Main()\",\"1,500\",0.00,0.00,0.00,0.00,\"m.exe\",\n2,\"A.B(int, int)\",300,0.00,0.00,0.00,0.00,\"m.exe\",\n\
             2,\"A.C()\",200,0.00,0.00,0.00,0.00,\"m.exe\",\n3,\"A.D()\",900,0.00,0.00,0.00,0.00,\"m.exe\",\n",
            "A.Main() 1000\nA.Main();A.B(int, int) 300\nA.Main();A.C();A.D() 900\n",
            &[
                "Warning: the collection was paused",
                "9,\"deep\",4,0.00,",
                "x,\"A\",4",
                "99999999999999999999,\"A\",4",
            ],
        ),
        (
            "GHC profile",
            "\tFri Jan  1 00:00 2021 Time and Allocation Profiling Report  (Final)\n\n\
             COST CENTRE  MODULE     SRC         no.  entries  %time %alloc   %time %alloc\n\n",
            "MAIN         MAIN       <built-in>  100        0    0.1    0.0   100.0  100.0\n \
             CAF         Options    <entire>    101        0   32.3    0.0     1.0    1.0\n  \
             ünïcode    Options    a.hs:1:1-4  102        1    1.1    0.0     0.0    0.0\n \
             CAF         GHC.IO     <entire>    103        0    0.0    0.0     0.0    0.0\n  \
             main       Main       b.hs:2:1-4  104        1   66.5    0.0     0.0    0.0\n",
            "MAIN.MAIN 1\nMAIN.MAIN;GHC.IO.CAF;Main.main 665\nMAIN.MAIN;Options.CAF 323\nMAIN.MAIN;Options.CAF;Options.ünïcode 11\n",
            &[
                "warning: a sample was lost",
                "      deep   Options    <entire>    103        0    0.1    0.0     0.0    0.0",
            ],
        ),
    ];

    fn end(kind: &str) -> &'static str {
        match kind {
            "macOS sample output" => {
                "\nTotal number in stack (recursive counted multiple, when >=5):\n"
            }
            _ => "",
        }
    }

    #[test]
    fn call_trees_are_told_apart_and_read() {
        for (kind, title, tree, folded, _) in FILES {
            let text = [title, tree, end(kind)].concat();
            assert_eq!(kind_and_text(&text), (kind, folded.to_owned()));
            let waited = "not shown: 3 samples in which threads waited";
            let expected: &[_] = if end(kind).is_empty() { &[] } else { &[waited] };
            assert_eq!(notes(&text), expected);
        }
    }

    #[test]
    fn an_odd_line_of_a_call_tree_is_told_wherever_it_is() {
        for (kind, title, tree, folded, odd_lines) in FILES {
            let count = tree.lines().count();
            for odd in odd_lines {
                for at in 0..=count {
                    let mut lines: Vec<_> = tree.lines().collect();
                    lines.insert(at, odd);
                    let text = [title, &lines.join("\n"), "\n", end(kind)].concat();
                    assert_eq!(kind_and_text(&text).1, folded, "{text}");
                    let told = notes(&text).concat();
                    let line = title.lines().count() + at + 1;
                    let expected = format!("the first is line {line}: `{}", &odd.trim()[..7]);
                    assert!(told.contains(": 1 lines that are none"), "{told}");
                    assert!(told.contains(&expected), "{told}");
                }
            }
        }
    }

    #[test]
    fn what_is_below_a_broken_line_of_a_call_tree_stays_there() {
        let read = |file: usize, good: &str, bad: &str| {
            let (kind, title, tree, ..) = FILES[file];
            assert!(tree.contains(good));
            let text = [title, &tree.replacen(good, bad, 1), end(kind)].concat();
            (kind_and_text(&text).1, notes(&text).concat())
        };
        let (folded, told) = read(0, "6 main", "six main");
        let expected = "Thread_1: main;dyld`start;[unknown];app`app::<a::B>::f 2\nThread_1: main;dyld`start;[unknown];libapp`-[A b:] 4\n";
        assert!(folded.starts_with(expected), "{folded}");
        assert!(
            told.contains("the first is line 6: `+   six main"),
            "{told}"
        );
        let (folded, told) = read(1, "main,0,app", "main,none,app");
        assert!(folded.contains("[unknown];app`work 600\n"), "{folded}");
        assert!(
            told.contains("the first is line 3: `main,none,app`"),
            "{told}"
        );
        // The calls that are not known any more are taken for the caller's.
        let (folded, _) = read(2, "\"A.C()\",200", "\"A.C()\",2e2");
        assert_eq!(
            folded,
            "A.Main() 300\nA.Main();A.B(int, int) 300\nA.Main();[unknown];A.D() 900\n"
        );
        let (folded, _) = read(3, "103        0    0.0", "103        0    n/a");
        assert!(
            folded.contains("MAIN.MAIN;[unknown];Main.main 665\n"),
            "{folded}"
        );
    }

    #[test]
    fn a_call_tree_that_is_cut_is_read_up_to_there() {
        let (_, title, tree, folded, _) = FILES[0];
        let text = [title, tree].concat();
        assert_eq!(kind_and_text(&text).1, folded);
        let told = notes(&text).concat();
        assert!(
            told.contains("what should be behind line 11: the file ends within the call tree"),
            "{told}"
        );
    }

    #[test]
    fn a_call_tree_of_which_nothing_can_be_read_is_refused_by_line() {
        for (_, title, _, _, odd) in FILES {
            let refusal = refused(&[title, odd[0], "\n"].concat());
            let line = title.lines().count() + 1;
            assert!(refusal.starts_with(&format!("line {line}: `")), "{refusal}");
        }
    }
}
