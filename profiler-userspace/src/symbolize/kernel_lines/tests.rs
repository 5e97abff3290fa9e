use super::*;
use crate::symbolize::dwarf::SourceLine;
use crate::symbolize::tests::program::Workshop;
use ::object::{Object as _, ObjectSymbol as _};
use std::fmt::Write as _;

/// Code that lies where the kernel's does, each function in a line of its own.
const KERNEL: &str = r#"
__attribute__((noinline)) int do_one(volatile int *x) { return *x * 3; }
__attribute__((noinline)) int do_two(volatile int *x) { return do_one(x) + 1; }
static inline __attribute__((always_inline)) int half(volatile int *x) {
    return *x / 2;
}
__attribute__((noinline)) int do_three(volatile int *x) {
    return half(x) * 5;
}
void _start(void) { volatile int x = 1; do_two(&x); do_three(&x); }
"#;

/// So much further than it was linked for lies the made-up kernel.
const SLIDE: u64 = 0x2c60_0000;

/// A made-up kernel: its file, its notes, its symbols, and where its functions are now.
struct Made {
    shop: Workshop,
    files: KernelFiles,
    one: u64,
    two: u64,
    three: u64,
}

fn made(flags: &[&str]) -> Made {
    let shop = Workshop::new();
    let linked = [
        "-O1",
        "-nostdlib",
        "-static",
        "-mcmodel=kernel",
        "-fno-pie",
        "-no-pie",
        "-fcf-protection=none",
        "-Wl,--build-id=sha1",
        "-Wl,-Ttext=0xffffffff81000000",
    ];
    let flags: Vec<&str> = linked.iter().chain(flags).copied().collect();
    let file = shop.compile("gcc", "vmlinux", KERNEL, &flags);
    let bytes = fs::read(&file).unwrap();
    let object = ::object::File::parse(bytes.as_slice()).unwrap();
    let address = |name: &str| {
        let mut symbols = object.symbols();
        symbols
            .find(|symbol| symbol.name() == Ok(name))
            .unwrap()
            .address()
            + SLIDE
    };
    let id = Elf::parse(bytes.as_slice()).unwrap().build_id.unwrap();
    let mut notes = vec![4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0];
    notes.extend(b"GNU\0");
    notes.extend(id.bytes());
    fs::write(shop.path("notes"), notes).unwrap();
    let mut symbols = "0000000000000000 A fixed_percpu_data\n".to_owned();
    let _ = writeln!(symbols, "{:016x} T _text", 0xffff_ffff_8100_0000 + SLIDE);
    let _ = writeln!(symbols, "{:016x} T _text_again", 1);
    fs::write(shop.path("kallsyms"), symbols).unwrap();
    let files = KernelFiles {
        notes: shop.path("notes"),
        symbols: shop.path("kallsyms"),
        debug: vec![shop.path("nowhere"), file],
    };
    let [one, two, three] = ["do_one", "do_two", "do_three"].map(address);
    Made {
        shop,
        files,
        one,
        two,
        three,
    }
}

impl Made {
    /// Names of the two functions and of a place in a module, with lines where these are known.
    fn lined(&self) -> (Vec<Option<String>>, KernelLining) {
        self.lined_from(None)
    }

    /// The same, where `fetch` may bring what is not here.
    fn lined_from(&self, fetch: Option<&Fetch<'_>>) -> (Vec<Option<String>>, KernelLining) {
        let mut functions = ["do_one", "do_two", "fuse_read"].map(|name| {
            let name = name.to_owned();
            Some(KernelFunction {
                name,
                ..KernelFunction::default()
            })
        });
        let lines = KernelLines::new(self.files.clone(), SymbolMemory::default(), fetch);
        let module = 0xffff_ffff_c020_1000;
        lines.add(&[self.one, self.two, module], &mut functions);
        let shown = |function: Option<KernelFunction>| {
            let KernelFunction { name, source, .. } = function?;
            Some(source.map_or(name.clone(), |SourceLine { file, line }| {
                format!("{name} ({}:{line})", file.rsplit('/').next().unwrap())
            }))
        };
        (functions.map(shown).to_vec(), lines.lining())
    }

    fn without_lines(&self) -> KernelLining {
        let (names, lining) = self.lined();
        assert!(
            names.iter().flatten().all(|name| !name.contains('(')),
            "{names:?}"
        );
        lining
    }
}

#[test]
fn kernel_functions_have_lines_at_any_load_address_and_modules_none() {
    let made = made(&["-g"]);
    let (names, lining) = made.lined();
    let expected = ["do_one (vmlinux.c:2)", "do_two (vmlinux.c:3)", "fuse_read"];
    assert_eq!(names, expected.map(|name| Some(name.to_owned())));
    assert_eq!(lining, KernelLining::Told { beyond: 1, left: 0 });
    // Nor has what has no name.
    let lines = KernelLines::new(made.files.clone(), SymbolMemory::default(), None);
    let mut names = [None];
    lines.add(&[made.one], &mut names);
    assert_eq!(names, [None]);
    lines.add(&[], &mut []);
    assert_eq!(lines.lining(), KernelLining::NotNeeded);
}

#[test]
fn instructions_of_the_kernel_have_the_lines_of_what_was_compiled_in() {
    let made = made(&["-g"]);
    let lines = KernelLines::new(made.files.clone(), SymbolMemory::default(), None);
    let addresses: Vec<u64> = (made.three..made.three + 8).collect();
    let all = lines.within("do_three", &addresses);
    let shown: Vec<Vec<(&str, u32)>> = (all.iter())
        .map(|levels| {
            let shown = levels
                .iter()
                .map(|(name, source)| (name.as_str(), source.line));
            shown.collect()
        })
        .collect();
    assert!(
        shown.iter().all(|levels| levels[0].0 == "do_three"),
        "{shown:?}"
    );
    assert!(
        shown.contains(&vec![("do_three", 8), ("half", 5)]),
        "{shown:?}"
    );
    assert_eq!(lines.lining(), KernelLining::Told { beyond: 0, left: 0 });
    // Of another function at these addresses nothing is known.
    assert!(lines.within("other", &addresses).iter().all(Vec::is_empty));
    let unfit = KernelLining::Unfit {
        found: Some(made.shop.path("vmlinux")),
    };
    assert_eq!(lines.lining(), unfit);
}

#[test]
fn a_debug_file_must_match_the_running_kernel() {
    let mut made = made(&["-g"]);
    let mut notes = fs::read(&made.files.notes).unwrap();
    notes[20] ^= 1;
    fs::write(&made.files.notes, &notes).unwrap();
    let found = made.shop.path("vmlinux");
    assert_eq!(made.without_lines(), KernelLining::Another { found });
    fs::write(&made.files.notes, b"").unwrap();
    assert_eq!(made.without_lines(), KernelLining::Unproven);
    made.files.notes = made.shop.path("nowhere");
    assert_eq!(made.without_lines(), KernelLining::Unproven);
}

#[test]
fn a_file_without_debug_information_is_skipped() {
    let mut made = made(&[]);
    let found = made.shop.path("vmlinux");
    assert_eq!(made.without_lines(), KernelLining::Another { found });
    made.files.debug.pop();
    let wanted = made.shop.path("nowhere");
    assert_eq!(made.without_lines(), KernelLining::Missing { wanted });
}

#[test]
fn a_kernel_with_a_hidden_or_wrong_load_address_has_no_lines() {
    let made = made(&["-g"]);
    fs::write(&made.files.symbols, "0000000000000000 T _text\n").unwrap();
    assert_eq!(made.without_lines(), KernelLining::Hidden);
    // One function further, the names do not agree.
    let wrong = 0xffff_ffff_8100_0000 + SLIDE + made.one.abs_diff(made.two);
    fs::write(&made.files.symbols, format!("{wrong:016x} T _text\n")).unwrap();
    let found = Some(made.shop.path("vmlinux"));
    assert_eq!(made.without_lines(), KernelLining::Unfit { found });
}

#[test]
fn a_missing_kernel_debug_file_is_fetched_by_build_id() {
    let mut made = made(&["-g"]);
    let file = made.files.debug.pop().unwrap();
    let elf = Elf::read(&File::open(&file).unwrap()).unwrap();
    let asked = RefCell::new(Vec::new());
    let gives = |path: &Path| {
        let path = path.to_owned();
        let asked = &asked;
        move |id: &BuildId| {
            asked.borrow_mut().push(id.clone());
            RegularFile::open(&path).ok()
        }
    };
    let fetch = gives(&file);
    let (names, lining) = made.lined_from(Some(&fetch));
    assert_eq!(names[1].as_deref(), Some("do_two (vmlinux.c:3)"));
    assert_eq!(lining, KernelLining::Told { beyond: 1, left: 0 });
    assert_eq!(asked.borrow()[..], [elf.build_id.unwrap()]);
    // Once, however often names are wanted.
    let lines = KernelLines::new(made.files.clone(), SymbolMemory::default(), Some(&fetch));
    for _ in 0..2 {
        let name = "do_one".to_owned();
        let mut functions = [Some(KernelFunction {
            name,
            ..KernelFunction::default()
        })];
        lines.add(&[made.one], &mut functions);
        let source = functions[0]
            .as_ref()
            .and_then(|function| function.source.as_ref());
        assert_eq!(source.map(|source| source.line), Some(2));
    }
    assert_eq!(asked.borrow().len(), 2);
    // One without debug information is no help, nor is one of another build, nor none.
    let wanted = made.shop.path("nowhere");
    made.shop.run("strip", ["-g", "-o", "bare", "vmlinux"]);
    let other = Path::new("/proc/self/exe");
    for given in [&made.shop.path("bare"), other, &wanted] {
        let (names, lining) = made.lined_from(Some(&gives(given)));
        assert_eq!(names[0].as_deref(), Some("do_one"));
        let wanted = wanted.clone();
        assert_eq!(lining, KernelLining::Missing { wanted });
    }
    // It has to agree with the kernel, as any other.
    let wrong = 0xffff_ffff_8100_0000 + SLIDE + made.one.abs_diff(made.two);
    fs::write(&made.files.symbols, format!("{wrong:016x} T _text\n")).unwrap();
    let (_, lining) = made.lined_from(Some(&fetch));
    assert_eq!(lining, KernelLining::Unfit { found: None });
    // Nobody is asked for what would be of no use, or is here.
    let before = asked.borrow().len();
    fs::write(&made.files.symbols, "0000000000000000 T _text\n").unwrap();
    assert_eq!(made.lined_from(Some(&fetch)).1, KernelLining::Hidden);
    made.files.debug.push(file);
    fs::write(&made.files.symbols, format!("{wrong:016x} T _text\n")).unwrap();
    made.lined_from(Some(&fetch));
    assert_eq!(asked.borrow().len(), before);
}

#[test]
fn files_are_looked_for_where_distributions_put_them() {
    let files = KernelFiles::here("6.1.0-x", &[PathBuf::from("/debug")]);
    for path in [
        "/debug/boot/vmlinux-6.1.0-x",
        "/usr/lib/debug/boot/vmlinux-6.1.0-x",
        "/usr/lib/debug/lib/modules/6.1.0-x/vmlinux",
        "/lib/modules/6.1.0-x/build/vmlinux",
    ] {
        assert!(files.debug.contains(&PathBuf::from(path)), "{path}");
    }
    assert!(files.debug[0].starts_with("/debug"));
    assert_eq!(files.notes, Path::new("/sys/kernel/notes"));
}
