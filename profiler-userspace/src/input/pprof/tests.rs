use crate::input::tests::{annotated, read};
use crate::input::{ReadOptions, Reading};
use crate::pprof;
use prost::Message as _;

/// A pprof file to be.
struct Made {
    message: pprof::Profile,
}

impl Made {
    /// One whose samples have these types.
    fn new(types: &[(&str, &str)]) -> Self {
        let mut made = Self {
            message: pprof::Profile {
                string_table: vec![Vec::new()],
                ..pprof::Profile::default()
            },
        };
        for (kind, unit) in types {
            let one = pprof::ValueType {
                kind: made.text(kind),
                unit: made.text(unit),
            };
            made.message.sample_type.push(one);
        }
        made
    }

    fn text(&mut self, text: &str) -> i64 {
        let table = &mut self.message.string_table;
        let known = table.iter().position(|known| known == text.as_bytes());
        known.unwrap_or_else(|| {
            table.push(text.as_bytes().to_vec());
            table.len() - 1
        }) as i64
    }

    /// A location with lines of functions, the innermost first.
    fn location(&mut self, mapping: u64, address: u64, lines: &[(&str, i64)]) -> u64 {
        let id = self.message.location.len() as u64 + 1;
        let mut line = Vec::new();
        for (name, number) in lines {
            let function_id = self.message.function.len() as u64 + 1;
            let function = pprof::Function {
                id: function_id,
                name: self.text(name),
                filename: self.text("/src/main.go"),
                ..pprof::Function::default()
            };
            self.message.function.push(function);
            line.push(pprof::Line {
                function_id,
                line: *number,
            });
        }
        self.message.location.push(pprof::Location {
            id,
            mapping_id: mapping,
            address,
            line,
        });
        id
    }

    fn sample(&mut self, stack: &[u64], values: &[i64], labels: &[(&str, &str)]) {
        let label = |made: &mut Self, (key, text): &(&str, &str)| pprof::Label {
            key: made.text(key),
            text: made.text(text),
            ..pprof::Label::default()
        };
        let label = labels.iter().map(|one| label(self, one)).collect();
        self.message.sample.push(pprof::Sample {
            location_id: stack.to_vec(),
            value: values.to_vec(),
            label,
        });
    }

    fn reading(&self, sample_type: Option<&str>) -> Reading {
        let options = ReadOptions {
            sample_type,
            ..ReadOptions::ALL
        };
        let (kind, reading) = read(&self.message.encode_to_vec(), &options).unwrap();
        assert_eq!(kind.name, "pprof");
        reading
    }

    fn folded(&self) -> String {
        annotated(&self.reading(None).profile)
    }
}

#[test]
fn lines_are_told_apart_only_if_that_is_wanted() {
    let mut made = Made::new(&[("samples", "count")]);
    let main = made.location(0, 0x10, &[("main", 10)]);
    for (line, weight) in [(40, 3), (41, 4)] {
        let parse = made.location(0, 0x20 + line as u64, &[("parse", line)]);
        made.sample(&[parse, main], &[weight], &[]);
    }
    let mut profile = made.reading(None).profile;
    assert_eq!(
        annotated(&profile),
        "main (main.go:10);parse (main.go:40) 3\nmain (main.go:10);parse (main.go:41) 4\n"
    );
    profile.line_frames = false;
    assert_eq!(annotated(&profile), "main;parse 7\n");
}

#[test]
fn the_order_of_labels_does_not_matter() {
    let mut made = Made::new(&[("samples", "count")]);
    let work = made.location(0, 0x10, &[("work", 0)]);
    made.sample(&[work], &[3], &[("process", "java"), ("thread", "pool-1")]);
    made.sample(&[work], &[4], &[("thread", "pool-1"), ("process", "java")]);
    assert_eq!(made.folded(), "java;work 7\n");
    let mut made = Made::new(&[("samples", "count")]);
    let work = made.location(0, 0x10, &[("work", 0)]);
    let mut labels = [
        ("process_name", "jvm"),
        ("process", "java"),
        ("process", "zava"),
        ("thread_name", "pool"),
        ("comm", "pool-1"),
        ("process_id", "8"),
        ("pid", "7"),
    ];
    made.sample(&[work], &[3], &labels);
    labels.reverse();
    made.sample(&[work], &[4], &labels);
    assert_eq!(made.folded(), "java;work 7\n");
    let profile = made.reading(None).profile;
    let owners = profile
        .samples()
        .iter()
        .map(|sample| profile.labels_at(sample.labels));
    let owners: Vec<_> = owners.map(|of| (of.pid, of.comm.clone())).collect();
    assert_eq!(owners[0], (Some(7), Some("pool-1".to_owned())));
    assert!(owners.iter().all(|of| *of == owners[0]));
}

#[test]
fn the_kernel_is_known_by_addresses_and_by_modules() {
    let mut made = Made::new(&[("samples", "count")]);
    for (id, name) in [
        (1, "/opt/app"),
        (2, "[nf_tables]"),
        (3, "/usr/lib/debug/vmlinux-6.1"),
        (4, ""),
    ] {
        let filename = made.text(name);
        made.message.mapping.push(pprof::Mapping {
            id,
            filename,
            ..pprof::Mapping::default()
        });
    }
    let main = made.location(1, 0x1010, &[("main", 0)]);
    for (mapping, address, name) in [
        (2, 0xffff_ffff_c000_0010, "nft_do_chain"),
        (2, 0x10, "nft_low"),
        (3, 0x4e_1000, "nf_hook"),
        (4, 0xffff_ffff_8100_0010, "vfs_read"),
        (0, 0xffff_ffff_8100_0020, "vfs_write"),
    ] {
        let leaf = made.location(mapping, address, &[(name, 0)]);
        made.sample(&[leaf, main], &[1], &[]);
    }
    let expected = [
        "nf_hook",
        "nft_do_chain",
        "nft_low",
        "vfs_read",
        "vfs_write",
    ];
    let expected = expected.map(|name| format!("main;{name}_[k] 1\n")).concat();
    assert_eq!(made.folded(), expected);
}

#[test]
fn frames_are_dropped_as_the_file_asks() {
    let mut made = Made::new(&[("space", "bytes")]);
    let [main, load, new, memset, kept] = [
        "main",
        "load",
        "allocator_new(long)",
        "memset",
        "allocator_keep",
    ]
    .map(|name| made.location(0, 0, &[(name, 0)]));
    let inlined = made.location(0, 0, &[("allocator_in", 0), ("caller", 0)]);
    made.sample(&[memset, new, load, main], &[100], &[]);
    made.sample(&[memset, kept, main], &[10], &[]);
    made.sample(&[memset, inlined, main], &[20], &[]);
    made.sample(&[memset, new], &[7], &[]);
    made.message.drop_frames = made.text("allocator_.*");
    made.message.keep_frames = made.text(".*_keep");
    assert_eq!(
        made.folded(),
        "allocator_new(long);memset 7\nmain;allocator_keep;memset 10\nmain;caller 20\nmain;load 100\n"
    );
    let notes = made.reading(None).notes;
    assert_eq!(
        notes,
        [(
            "dropped",
            "frames in stacks of 120 bytes, as the file asks: allocator_.*".to_owned()
        )]
    );
    made.message.drop_frames = made.text("(");
    let notes = made.reading(None).notes;
    assert!(
        notes[0]
            .1
            .starts_with("nothing, though the file asks to drop (: not a regular expression"),
        "{notes:?}"
    );
}

#[test]
fn a_type_in_which_nothing_was_counted_is_not_shown_unless_it_is_asked_for() {
    let mut made = Made::new(&[
        ("cpu", "nanoseconds"),
        ("wall", "nanoseconds"),
        ("exceptions", "count"),
    ]);
    let work = made.location(0, 0x10, &[("work", 0)]);
    made.sample(&[work], &[0, 5000, 2], &[]);
    assert_eq!(made.folded(), "work 5\n");
    let notes = made.reading(None).notes;
    let expected = "cpu (0 nanoseconds), exceptions (2): shown is wall; choose with --sample-type";
    assert_eq!(notes, [("not shown", expected.to_owned())]);
    made.message.default_sample_type = made.text("cpu");
    assert_eq!(made.folded(), "work 5\n");
    made.message.default_sample_type = made.text("exceptions");
    assert_eq!(made.folded(), "work 2\n");
}
